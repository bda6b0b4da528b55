/// A microcontroller's own generator.
struct Peripheral;

impl apr_crypto::Rng for Peripheral {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), apr_crypto::Error> {
        out.fill(4);
        Ok(())
    }
}

fn call(bytes: &[u8]) -> usize {
    through_it(bytes).unwrap_or(0)
}

fn through_it(bytes: &[u8]) -> Result<usize, apr_crypto::Error> {
    use apr_crypto::{
        Argon2Limits, ChunkedReader, FileKey, LeafLen, Password, PasswordStanza, RecipientSecret,
    };
    use apr_crypto::{SecretKey, SigningKey, StoredKey, TreeAlgorithm, TreeHasher, TrustedKeys, minisign};

    use apr_crypto::inference::{
        Padding, ReplayGuard, RequestOptions, decrypt_request, decrypt_response, encrypt_for_model, encrypt_response,
    };

    let rng = &mut Peripheral;
    let text = core::str::from_utf8(bytes).unwrap_or_default();
    let StoredKey::Open(SecretKey::Signing(signer)) = StoredKey::from_text(text, &Argon2Limits::default())?
    else {
        return Ok(SecretKey::from_pkcs8_pem(text)?.to_text().as_str().len());
    };
    let (recipient, key) = (RecipientSecret::generate(rng)?, FileKey::generate(rng)?);
    let stanza = key.wrap_for(rng, &recipient.public(), bytes)?;
    let sealed = stanza.unwrap(&recipient, bytes)?.seal_chunked(rng, bytes, bytes)?;
    let locked = PasswordStanza::from_bytes(&[1; PasswordStanza::LEN], &Argon2Limits::default())?;
    let key = locked.unwrap(&Password::from(text), bytes)?;
    let mut out = [0; 8];
    ChunkedReader::open(&sealed, &key, bytes)?.read_exact_at(0, &mut out)?;

    let mut root = 0;
    for algorithm in [TreeAlgorithm::Blake3, TreeAlgorithm::Sha256] {
        let mut hasher = TreeHasher::new(algorithm, LeafLen::KIB_16);
        hasher.update(bytes);
        let (made, outboard) = hasher.finish();
        made.verify(0..16_384, bytes, &made.prove(0..16_384, &outboard)?)?;
        root += outboard.len();
    }
    let trusted = TrustedKeys::parse(text)?;
    let signature = signer.sign(bytes);
    trusted.key_of("a").unwrap_or(&signer.verifying_key()).verify(bytes, &signature)?;
    let detached = minisign::SecretKey::from(SigningKey::generate(rng)?);
    let made = detached.sign(&[0; 64], text, text)?;
    let (question, pending) =
        encrypt_for_model(rng, &recipient.public(), bytes, bytes, &RequestOptions::default())?;
    let asked = decrypt_request(&recipient, bytes, &question)?;
    ReplayGuard::new(8, 300).admit(asked.token(), 0)?;
    let answer = encrypt_response(rng, &asked, asked.input(), Padding::PowerOfTwo)?;
    root += decrypt_response(&pending, &answer)?.len();
    Ok(root + detached.public().verify_file(bytes, &made)?.len() + out.len())
}
