//! The calls that users of aprender know compile and do what they did. `docs/coming-from.md` lists both names side by side.

use apr_container::{
    Compression, DistillationInfo, DistillationParams, ErrorKind, ModelType, SaveOptions, Teacher, inspect,
    load, load_as_recipient, load_encrypted, load_from_bytes, load_verified, save, save_encrypted,
    save_for_recipient, save_signed,
};
use apr_crypto::{OsRandom, RecipientPublic, RecipientSecret, SigningKey, VerifyingKey};
use apr_models::{KMeans, LinearRegression, Matrix, Vector};

use crate::data::{TempFolder, fitted, matrix};

fn trained() -> LinearRegression {
    fitted(&matrix(&[[1.0], [2.0], [3.0]]), &[3.0, 5.0, 7.0])
}

type Tested = Result<(), Box<dyn core::error::Error>>;

#[test]
fn quick_start() -> Tested {
    let folder = TempFolder::new();
    let path = folder.file("model.apr");
    let (x, y) = (Matrix::from_vec(3, 1, vec![1.0, 2.0, 3.0])?, Vector::from_vec(vec![3.0, 5.0, 7.0]));

    let mut model = LinearRegression::new();
    model.fit(&x, &y)?;
    save(&model, ModelType::LinearRegression, &path, SaveOptions::default())?;
    let loaded: LinearRegression = load(&path, ModelType::LinearRegression)?;
    assert_eq!(loaded.predict(&x), model.predict(&x));

    let bytes = std::fs::read(&path)?;
    let loaded: LinearRegression = load_from_bytes(&bytes, ModelType::LinearRegression)?;
    assert_eq!(loaded, model);
    Ok(())
}

#[test]
fn metadata_take_json_values() -> Tested {
    let folder = TempFolder::new();
    let path = folder.file("model.apr");
    let mut options = SaveOptions::default()
        .with_name("house-price-predictor")
        .with_description("Trained on Boston Housing dataset");
    options.metadata.hyperparameters.insert("learning_rate".to_string(), serde_json::json!(0.01));
    options.metadata.metrics.insert("r2_score".to_string(), serde_json::json!(0.95));
    options
        .metadata
        .custom
        .insert("nested".to_string(), serde_json::json!({"a": [1, -1, u64::MAX, null, true, "b"]}));
    options.metadata.custom.insert("plain".to_string(), 0.5);
    save(&trained(), ModelType::LinearRegression, &path, options)?;

    let info = inspect(&path)?;
    assert_eq!(info.model_type, ModelType::LinearRegression);
    assert_eq!((info.format_version.0, info.format_version.1), (1, 0));
    assert!(info.payload_size > 0 && !info.encrypted && !info.signed);
    assert!(!info.metadata.created_at.is_empty());
    assert_eq!(info.metadata.hyperparameters["learning_rate"].as_f64(), Some(0.01));
    assert_eq!(info.metadata.metrics["r2_score"].as_f64(), Some(0.95));
    let nested = info.metadata.custom["nested"].to_string();
    assert_eq!(nested, r#"{"a":[1,-1,18446744073709551615,null,true,"b"]}"#);
    assert_eq!(info.metadata.custom["plain"].as_f64(), Some(0.5));
    assert!(info.distillation.is_none());
    Ok(())
}

#[test]
fn provenance_of_a_distilled_model() -> Tested {
    let folder = TempFolder::new();
    let path = folder.file("student.apr");
    let mut options = SaveOptions::default();
    options.metadata.distillation_info = Some(DistillationInfo {
        teacher: Teacher { hash: "f00d".into(), ..Teacher::default() },
        params: DistillationParams { temperature: 3.0, final_loss: Some(0.25), ..Default::default() },
        ..DistillationInfo::default()
    });
    save(&trained(), ModelType::LinearRegression, &path, options)?;

    let info = inspect(&path)?;
    assert_eq!(info.distillation(), info.distillation.as_ref());
    let distill = info.distillation.unwrap();
    assert_eq!(format!("{}", distill.teacher.hash), "f00d");
    assert_eq!(format!("{:?}", distill.method), "Standard");
    assert_eq!(format!("{}", distill.params.temperature), "3");
    // An option here: files of other programs may lack it.
    assert_eq!(distill.params.final_loss, Some(0.25));
    Ok(())
}

#[test]
fn compressions_have_their_names() {
    let names = [Compression::None, Compression::ZstdDefault, Compression::ZstdMax, Compression::LZ4];
    assert_eq!(names, Compression::KNOWN);
    let archival = SaveOptions::default().with_compression(Compression::ZstdMax);
    assert_eq!(archival.compression, Compression::ZstdMax);
}

#[test]
fn passwords() -> Tested {
    let folder = TempFolder::new();
    let path = folder.file("secure.apr");
    let model = trained();
    save_encrypted(&model, ModelType::LinearRegression, &path, SaveOptions::default(), "my-strong-password")?;
    let loaded: LinearRegression = load_encrypted(&path, ModelType::LinearRegression, "my-strong-password")?;
    assert_eq!(loaded, model);
    let refused =
        load_encrypted::<LinearRegression>(&path, ModelType::LinearRegression, "another").unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::DecryptionFailed));
    Ok(())
}

#[test]
fn recipients_with_keys_of_x25519_dalek() -> Tested {
    let folder = TempFolder::new();
    let path = folder.file("commercial.apr");
    let buyer_secret = x25519_dalek::StaticSecret::from([7; 32]);
    let buyer_public = x25519_dalek::PublicKey::from(&buyer_secret);

    let buyer_public = RecipientPublic::try_from(buyer_public)?;
    let buyer_secret = RecipientSecret::from(buyer_secret);
    assert_eq!(RecipientPublic::from(&buyer_secret), buyer_public);

    let model = trained();
    save_for_recipient(&model, ModelType::LinearRegression, &path, SaveOptions::default(), &buyer_public)?;
    let loaded: LinearRegression = load_as_recipient(&path, ModelType::LinearRegression, &buyer_secret)?;
    assert_eq!(loaded, model);

    let neutral = RecipientPublic::try_from(x25519_dalek::PublicKey::from([0; 32])).unwrap_err();
    assert_eq!(neutral.code(), "cy-weak-key");
    Ok(())
}

#[test]
fn signatures_with_keys_of_ed25519_dalek() -> Tested {
    let folder = TempFolder::new();
    let path = folder.file("signed.apr");
    let model = trained();

    let signing_key = SigningKey::generate(&mut OsRandom)?;
    let verifying_key = VerifyingKey::from(&signing_key);
    save_signed(&model, ModelType::LinearRegression, &path, SaveOptions::default(), &signing_key)?;
    let loaded: LinearRegression = load_verified(&path, ModelType::LinearRegression, Some(&verifying_key))?;
    assert_eq!(loaded, model);
    // Without a key the signature must be valid, by whatever key; a reference is taken without `Some`, too.
    let loaded: LinearRegression = load_verified(&path, ModelType::LinearRegression, None)?;
    assert_eq!(loaded, model);
    let loaded: LinearRegression = load_verified(&path, ModelType::LinearRegression, &verifying_key)?;
    assert_eq!(loaded, model);

    let dalek = ed25519_dalek::SigningKey::from_bytes(&[1; 32]);
    let other = VerifyingKey::try_from(dalek.verifying_key())?;
    assert_eq!(SigningKey::from(dalek).verifying_key(), other);
    let refused =
        load_verified::<LinearRegression>(&path, ModelType::LinearRegression, Some(&other)).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::UntrustedSigner));
    Ok(())
}

#[test]
fn errors_are_matched_by_kind() -> Tested {
    let folder = TempFolder::new();
    let path = folder.file("lr.apr");
    save(&trained(), ModelType::LinearRegression, &path, SaveOptions::default())?;
    let result = load::<KMeans>(&path, ModelType::KMeans);
    match result.as_ref().map_err(apr_container::Error::kind) {
        Err(ErrorKind::ModelTypeMismatch { expected, found }) => {
            assert_eq!((*expected, *found), (ModelType::KMeans, ModelType::LinearRegression));
        }
        other => panic!("{other:?}"),
    }
    let mut bytes = std::fs::read(&path)?;
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let damaged = load_from_bytes::<LinearRegression>(&bytes, ModelType::LinearRegression).unwrap_err();
    assert!(matches!(damaged.kind(), ErrorKind::ChecksumMismatch { .. }));
    // A function that returns `Result<_, String>` converts the error itself.
    let text: Result<(), String> = Err(damaged.to_string());
    assert!(text.is_err_and(|text| text.contains("checksum")));
    Ok(())
}

#[test]
fn an_unfitted_model_is_not_saved() {
    let folder = TempFolder::new();
    let path = folder.file("u.apr");
    let unfitted = LinearRegression::new();
    let refused = save(&unfitted, ModelType::LinearRegression, &path, SaveOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "am-not-fitted");
    assert!(!path.exists());
}
