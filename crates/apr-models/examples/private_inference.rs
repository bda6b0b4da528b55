//! A client sends encrypted features to a linear regression on a server and receives an encrypted prediction; between them, no
//! one can read either or replace the prediction. `docs/private-inference.md` states what this protects and what it does not.
//!
//! `cargo run --package apr-models --example private_inference`

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use apr_container::{ModelType, Protection, ReadOptions, SaveOptions, authenticate, to_vec};
use apr_crypto::Access;
use apr_crypto::inference::{
    Padding, ReplayGuard, RequestOptions, decrypt_request, decrypt_response, encrypt_for_model,
    encrypt_response,
};
use apr_crypto::{OsRandom, RecipientSecret, SigningKey};
use apr_models::{LinearRegression, Matrix, Vector};

/// What client and server agree on beside the key.
const CONTEXT: &[u8] = b"example.org house-prices 3";
/// Requests of up to some 50 features look alike.
const PADDING: Padding = Padding::Multiple(NonZeroU32::new(256).expect("not zero"));
/// Longest message either side reads.
const FRAME_MAX: usize = 64 * 1024;
/// Seconds by which a request may be older or newer than the server's clock.
const WINDOW: u64 = 300;
/// What the owner of the model pays for: requests the server answers before it ends.
const CALLS: usize = 4;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    // The maker trains the model and signs it, with the public key to ask it under.
    let (maker, owner) = (SigningKey::generate(&mut OsRandom)?, RecipientSecret::generate(&mut OsRandom)?);
    let mut model = LinearRegression::new();
    let x = Matrix::from_vec(4, 2, vec![1.0, 1.0, 2.0, 1.0, 1.0, 3.0, 4.0, 2.0])?;
    model.fit(&x, &Vector::from_vec(vec![6.0, 8.0, 12.0, 15.0]))?;
    let options = SaveOptions::default()
        .with_name("house-prices")
        .with_inference_key(&owner.public())
        .with_protection(Protection::default().signed_by(&maker));
    let file = to_vec(&model, ModelType::LinearRegression, &options)?;

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || serve(&listener, &owner, &model));

    // The client got the file from anywhere, and the maker's public key from somewhere it trusts.
    let known = maker.verifying_key();
    let authentic = authenticate(&file, &Access::default().with_trust(&known), &ReadOptions::STRICT)?;
    let key = authentic.inference_key()?;

    let features = [3.0_f32, 2.5];
    let options = RequestOptions::default().sent_at(now()?).with_padding(PADDING);
    let input = features.map(f32::to_le_bytes).concat();
    let (request, pending) = encrypt_for_model(&mut OsRandom, key.public(), CONTEXT, &input, &options)?;
    let response = call(address, &request)?;
    let answer = decrypt_response(&pending, &response)?;
    let price = f32::from_le_bytes(answer.as_slice().try_into()?);
    println!("the server says {price:.2} for {features:?}");
    assert!((price - 14.5).abs() < 0.01, "2 x 3.0 + 3 x 2.5 + 1, less rounding");

    // Who listens on the way sees nothing of the input, and of its length only the bucket.
    let sees = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(!sees(&request, &input) && !sees(&response, &price.to_le_bytes()));
    let longer = [0; 100];
    let (other, other_pending) = encrypt_for_model(&mut OsRandom, key.public(), CONTEXT, &longer, &options)?;
    assert_eq!(other.len(), request.len());

    // Who recorded the request and sends it again gets no answer; nor does who changed it.
    assert_eq!(refusal(call(address, &request)?), "cy-replay");
    let mut changed = request.clone();
    changed[60] ^= 1;
    assert_eq!(refusal(call(address, &changed)?), "cy-open");
    // The server understands the other request; that its model cannot answer it is told under encryption, too.
    let told = decrypt_response(&other_pending, &call(address, &other)?)?;
    assert_eq!(told, b"2 features are needed");
    // An answer to one request is none to another.
    assert!(decrypt_response(&other_pending, &response).is_err());

    let (seen, recorded) = server.join().map_err(|_| "the server panicked")??;
    // The server saw the inputs, as it must, and of the wire nothing that tells more.
    assert_eq!(seen, [input.clone(), longer.to_vec()]);
    assert!(recorded.iter().all(|message| !sees(message, &input)));
    println!("a recorded request and a changed one were refused");
    Ok(())
}

/// Inputs that the server opened, and messages as they came over the wire.
type Seen = (Vec<Vec<u8>>, Vec<Vec<u8>>);

fn serve(listener: &TcpListener, owner: &RecipientSecret, model: &LinearRegression) -> Result<Seen> {
    let mut guard = ReplayGuard::new(1_000, WINDOW);
    let (mut inputs, mut recorded) = (Vec::new(), Vec::new());
    for stream in listener.incoming().take(CALLS) {
        let mut stream = patient(stream?)?;
        let message = read_frame(&mut stream)?;
        let reply = match answer(owner, model, &mut guard, &message, &mut inputs) {
            Ok(response) => response,
            // Codes tell an attacker what they know already: that they changed a request, or sent it twice.
            Err(error) => error.code().as_bytes().to_vec(),
        };
        write_frame(&mut stream, &reply)?;
        recorded.push(message);
    }
    Ok((inputs, recorded))
}

fn answer(
    owner: &RecipientSecret,
    model: &LinearRegression,
    guard: &mut ReplayGuard,
    message: &[u8],
    inputs: &mut Vec<Vec<u8>>,
) -> std::result::Result<Vec<u8>, apr_crypto::Error> {
    let request = decrypt_request(owner, CONTEXT, message)?;
    // Without a clock every request is too old.
    guard.admit(request.token(), now().unwrap_or(0))?;
    inputs.push(request.input().to_vec());
    let (numbers, rest) = request.input().as_chunks::<4>();
    let features: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let output = match Matrix::from_vec(1, 2, features) {
        Ok(row) if rest.is_empty() => model.predict(&row).as_slice()[0].to_le_bytes().to_vec(),
        _ => b"2 features are needed".to_vec(),
    };
    encrypt_response(&mut OsRandom, &request, &output, PADDING)
}

/// Sends one message and reads the reply.
fn call(address: SocketAddr, message: &[u8]) -> Result<Vec<u8>> {
    let mut stream = patient(TcpStream::connect(address)?)?;
    write_frame(&mut stream, message)?;
    Ok(read_frame(&mut stream)?)
}

fn refusal(reply: Vec<u8>) -> String {
    String::from_utf8_lossy(&reply).into_owned()
}

/// Timeout of reads and writes.
fn patient(stream: TcpStream) -> io::Result<TcpStream> {
    let limit = Some(Duration::from_secs(10));
    stream.set_read_timeout(limit)?;
    stream.set_write_timeout(limit)?;
    Ok(stream)
}

fn write_frame(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let len = u32::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&[&len.to_le_bytes(), message].concat())
}

/// A length of more than [`FRAME_MAX`] is refused before memory is reserved for it.
fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = usize::try_from(u32::from_le_bytes(len)).unwrap_or(usize::MAX);
    if len > FRAME_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; len];
    stream.read_exact(&mut message)?;
    Ok(message)
}

fn now() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

#[test]
fn the_example_runs() {
    main().expect("every claim of the example holds");
}
