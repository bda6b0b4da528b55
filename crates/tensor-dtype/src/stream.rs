//! Writing the bytes of a tensor in pieces.

use std::io::{self, Write};

/// Lets `fill` write the bytes of one tensor to `w`, in pieces of any size. What every format's `write_streamed` is made of.
///
/// # Errors
///
/// Those of `fill`, and that of `check`, which is given the number of bytes and refuses any but `byte_len`: a piece that is too long
/// is not written.
///
/// ```
/// use std::io::{self, Write};
///
/// let mut file = Vec::new();
/// let check = |given| if given == 3 { Ok(()) } else { Err(io::Error::other(format!("{given} bytes"))) };
/// tensor_dtype::write_exact(&mut file, 3, |sink| sink.write_all(b"abc"), check)?;
/// let error = tensor_dtype::write_exact(&mut file, 3, |sink| sink.write_all(b"defg"), check).unwrap_err();
/// assert_eq!((error.to_string().as_str(), &file[..]), ("4 bytes", &b"abc"[..]));
/// # Ok::<(), io::Error>(())
/// ```
pub fn write_exact<W: Write + ?Sized, E>(
    w: &mut W,
    byte_len: u64,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    check: impl FnOnce(u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut sink = Exact { w, byte_len, given: 0 };
    let filled = fill(&mut sink);
    // Of too many bytes, the check says more than what `fill` made of the sink's error.
    if sink.given <= byte_len {
        filled?;
    }
    check(sink.given)
}

struct Exact<'a, W: ?Sized> {
    w: &'a mut W,
    byte_len: u64,
    /// Bytes written, or what they would have been with the piece that was refused.
    given: u64,
}

impl<W: Write + ?Sized> Write for Exact<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let given = self.given.saturating_add(bytes.len() as u64);
        if given > self.byte_len {
            self.given = given;
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "more bytes than the tensor has"));
        }
        let taken = self.w.write(bytes)?;
        self.given += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.w.flush()
    }
}
