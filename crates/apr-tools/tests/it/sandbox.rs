//! A folder of sample models, and the program run in it.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU32, Ordering};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use apr_container::{
    License, LicenseTier, Metadata, ModelType, Protection, RawModel, ReadOptions, SaveOptions, Value, to_vec,
    v2,
};
use apr_crypto::{Access, Password, PublicKey, RecipientSecret, Rng, SecretKey, SigningKey};
use apr_models::{LinearRegression, Vector};
use apr_quant::{Dtype, Quantizer};
use apr_sealed::{Part, Plan, SealOptions};
use gguf_core::GgufBuilder;
use st_core::{TensorView, WriteOptions};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A temporary folder that is removed when dropped; temporary files of the program go to `tmp` beside it.
pub(crate) struct Sandbox {
    base: PathBuf,
}

/// Exit code and output of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn empty() -> Self {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = std::env::temp_dir().join(format!("apr-test-{}-{id}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(base.join("tmp")).unwrap();
        fs::create_dir_all(base.join("work")).unwrap();
        Self { base }
    }

    /// With the sample models that help pages and snapshots use.
    pub(crate) fn with_models() -> Self {
        let sandbox = Self::empty();
        let (old, new) = (model(0.0), model(0.5));
        sandbox.write("model.safetensors", &file(&old, &metadata("1")));
        sandbox.write("same.safetensors", &file(&old, &metadata("1")));
        let mut changed: Vec<_> = old.iter().filter(|t| t.name != "mask").cloned().collect();
        changed[0] = new[0].clone();
        changed.push(Tensor::new("new", Dtype::U8, &[3], vec![1, 2, 3]));
        sandbox.write("changed.safetensors", &file(&changed, &metadata("2")));
        // Every layer changed, one tensor stored in another type.
        let mut halves = old.to_vec();
        for tensor in halves.iter_mut().filter(|tensor| tensor.name.starts_with("encoder")) {
            *tensor = Tensor::counting(&tensor.name, &tensor.shape.clone(), 0.25);
        }
        let wide = 1_f32.to_le_bytes().repeat(8);
        let head = halves.iter_mut().find(|tensor| tensor.name == "head.weight").unwrap();
        *head = Tensor::new("head.weight", Dtype::F32, &[2, 4], wide);
        sandbox.write("halves.safetensors", &file(&halves, &metadata("1")));
        let views: Vec<_> = old.iter().map(Tensor::view).collect();
        let options = WriteOptions { metadata: Some(metadata("1")), ..WriteOptions::default() };
        st_mmap::write_sharded(sandbox.path("sharded"), &views, 200, &options).unwrap();
        fs::create_dir(sandbox.path("empty")).unwrap();
        // As much of a checkout of this project as `embed` looks for.
        for name in ["apr-models", "apr-serve"] {
            fs::create_dir_all(sandbox.path("checkout/crates").join(name)).unwrap();
            sandbox.write(&format!("checkout/crates/{name}/Cargo.toml"), b"");
        }
        sandbox.write("quirk.safetensors", &quirk());
        let mut npy = b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".to_vec();
        npy.resize(127, b' ');
        npy.push(b'\n');
        npy.extend([1.5_f32, -2.0].map(f32::to_le_bytes).concat());
        sandbox.write("model.npy", &npy);
        sandbox.write("table.parquet", b"PAR1\x15\x04\x15\x10\x15\x14\x4c");
        let gguf = gguf();
        sandbox.write("cut.gguf", &gguf[..gguf.len() - 1]);
        sandbox.write("model.gguf", &gguf);
        let tiny_llama = "../conformance/vectors/gguf/files/tiny_llama_f32.gguf";
        let tiny_llama = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(tiny_llama)).unwrap();
        sandbox.write("tiny_llama.gguf", &tiny_llama);
        sandbox.write_folder("llama", "hf/Tiny-Llama2-110K-Chat");
        sandbox.write_folder("adapter", "hf-lora/qwen2");
        sandbox.write_folder("qwen2", "hf/Qwen2-Mini-0.5B");
        sandbox.write("model.apr", &linear(&SaveOptions::default()));
        sandbox.write("tensors.apr", &tensors());
        sandbox.write(
            "table.csv",
            b"age,size,price\n1,20,118.5\n2,30,176.2\n3,25,143.9\n7,40,221\n12,35,178.7\n20,50,239.4\n",
        );
        sandbox.write(
            "classes.csv",
            b"x,y,kind\n0,0.1,red\n0.2,0,red\n0.1,0.3,red\n4,5,blue\n4.5,5.5,blue\n4.2,4.9,blue\n",
        );
        sandbox.write("rows.csv", b"a,b\n1,2\n3,4\n-0.5,1e2\n");
        sandbox.write("texts.txt", "the cat sat\nthe dog sat on the cat\nein Vogel\n".as_bytes());
        crate::signatures::add_signed(&sandbox);
        sandbox.write("broken.safetensors", &sandbox.read("model.safetensors")[..700]);
        sandbox.write_keys();
        sandbox
    }

    /// A model folder of the vectors, under another name.
    pub(crate) fn write_folder(&self, name: &str, vector: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors").join(vector);
        fs::create_dir_all(self.path(name)).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), self.path(name).join(entry.file_name())).unwrap();
        }
    }

    /// Keys of a buyer and of a maker, and what one sells to the other.
    fn write_keys(&self) {
        for (name, key) in [("buyer.key", SecretKey::from(buyer())), ("maker.key", maker().into())] {
            key.create_file(&self.path(name), "").unwrap();
            self.write(&format!("{name}.pub"), key.public().to_file_text("").unwrap().as_bytes());
        }
        self.write("ed25519.pem", SecretKey::from(maker()).to_pkcs8_pem().as_str().as_bytes());
        self.write("password.txt", b"correct horse battery staple\n");
        self.close("ed25519.pem");
        self.close("password.txt");
        let trusted = format!("# whom we buy from\nmaker {}\n", maker().verifying_key());
        self.write("trusted.txt", trusted.as_bytes());
        self.set_mode("trusted.txt", 0o644);
        self.write("licensed.apr", &licensed());
        let protection = Protection::default();
        let (to, key) = (buyer().public(), maker());
        self.write("sold.apr", &protected(&licensed(), &protection.for_recipient(&to).signed_by(&key)));
        self.write("made.apr", &protected(&licensed(), &protection.signed_by(&key)));
        let password = Password::from("correct horse battery staple");
        self.write("locked.apr", &protected(&licensed(), &protection.with_password(&password)));
        let second = PublicKey::from(RecipientSecret::from_bytes(&[9; 32]).public());
        self.write("second.key.pub", second.to_file_text("").unwrap().as_bytes());
        let options = SealOptions::default().for_recipient(to).signed_by(&key).with_public("model", "sample");
        self.write(
            "model.sealed",
            &sealed(&self.read("model.safetensors"), &options.with_listed_recipients()),
        );
    }

    /// Takes all rights from everybody else.
    pub(crate) fn close(&self, name: &str) {
        self.set_mode(name, 0o600);
    }

    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        #[cfg(not(unix))]
        let _ = (name, mode);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.join("work").join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// A safetensors file of one tensor.
    pub(crate) fn write_large(&self, name: &str, len: usize) {
        let tensor = Tensor::new("weight", Dtype::U8, &[len], vec![7; len]);
        self.write(name, &file(&[tensor], &metadata("1")));
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Names and contents of all files.
    pub(crate) fn listing(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.base, &mut files);
        files
    }

    /// The program, in this folder, with an environment that does not depend on who runs the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apr"));
        command.args(args).current_dir(self.base.join("work")).env("TMPDIR", self.base.join("tmp"));
        command.env_remove("NO_COLOR").env_remove("COLUMNS").env_remove("LINES").env("TERM", "xterm");
        command.env_remove("LC_ALL").env_remove("LC_CTYPE").env_remove("LANG");
        // Not what the user of this machine has downloaded.
        command.env("HF_HOME", self.base.join("hub")).env_remove("HF_HUB_CACHE").env_remove("HF_HUB_OFFLINE");
        command.env("XDG_CACHE_HOME", self.base.join("caches"));
        command.env_remove("APR_BLOCK_CACHE").env_remove("APR_BLOCK_CACHE_SIZE");
        // Files come out the same in every run.
        command.env("SOURCE_DATE_EPOCH", "1795241427");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Runs a line of a shell, in which the program is called `apr`.
    #[cfg(unix)]
    pub(crate) fn shell(&self, line: &str) -> Ran {
        let bin = Path::new(env!("CARGO_BIN_EXE_apr")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.path(".")).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", self.base.join("caches")).env_remove("APR_BLOCK_CACHE");
        command.env("PATH", format!("{}:{path}", bin.display())).output().unwrap().into()
    }

    /// Runs with these bytes on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // A refusal may come before all of it is read.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap().into()
    }

    /// Runs with `--json`, and returns the one object printed.
    pub(crate) fn json(&self, args: &[&str]) -> (i32, serde_json::Value) {
        let ran = self.run(&[args, &["--json"]].concat());
        let value = serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}\n{}{}", ran.stdout, ran.stderr));
        (ran.exit, value)
    }

    /// A file in the folder for temporary files.
    pub(crate) fn write_temporary(&self, name: &str, bytes: &[u8]) {
        fs::write(self.base.join("tmp").join(name), bytes).unwrap();
    }

    /// Files the program left in the folder for temporary files.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        fs::read_dir(self.base.join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            exit: output.status.code().expect("not killed by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.insert(path.clone(), Vec::new());
            collect(&path, files);
        } else {
            files.insert(path.clone(), fs::read(path).unwrap());
        }
    }
}

/// A tensor that owns its bytes.
#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl Tensor {
    pub(crate) fn new(name: &str, dtype: Dtype, shape: &[usize], data: Vec<u8>) -> Self {
        Self { name: name.to_owned(), dtype, shape: shape.to_vec(), data }
    }

    /// F32 values `start`, `start + 1`, ...
    pub(crate) fn counting(name: &str, shape: &[usize], start: f32) -> Self {
        let count = shape.iter().product::<usize>();
        let data = (0..count).flat_map(|idx| (start + idx as f32).to_le_bytes()).collect();
        Self::new(name, Dtype::F32, shape, data)
    }

    fn view(&self) -> (&str, TensorView<'_>) {
        (&self.name, TensorView::new(self.dtype, &self.shape, &self.data).unwrap())
    }
}

/// A small model of every shape the reports treat differently.
fn model(shift: f32) -> Vec<Tensor> {
    let mut tensors = vec![Tensor::counting("embeddings.weight", &[8, 4], shift)];
    for layer in 0..3 {
        tensors.push(Tensor::counting(&format!("encoder.layer.{layer}.weight"), &[4, 4], layer as f32));
        tensors.push(Tensor::counting(&format!("encoder.layer.{layer}.bias"), &[4], -1.0));
    }
    tensors.push(Tensor::new("head.weight", Dtype::F16, &[2, 4], [0x00, 0x3c].repeat(8)));
    tensors.push(Tensor::new("position_ids", Dtype::I64, &[1, 3], vec![0; 24]));
    tensors.push(Tensor::new("mask", Dtype::Bool, &[3], vec![1, 0, 1]));
    tensors
}

fn metadata(version: &str) -> BTreeMap<String, String> {
    [("format", "pt"), ("version", version)].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

pub(crate) fn file(tensors: &[Tensor], metadata: &BTreeMap<String, String>) -> Vec<u8> {
    let views: Vec<_> = tensors.iter().map(Tensor::view).collect();
    let options = WriteOptions { metadata: Some(metadata.clone()), ..WriteOptions::default() };
    st_core::to_vec(&views, &options).unwrap()
}

/// A safetensors file of this header and these data.
pub(crate) fn raw(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// What the official reader accepts and the specification forbids: a name given twice.
fn quirk() -> Vec<u8> {
    raw(
        r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}"#,
        &[1, 2],
    )
}

/// An `.apr` file of version 1 with a model of two features, `1 + 2 a - 0.5 b`.
pub(crate) fn linear(options: &SaveOptions<'_>) -> Vec<u8> {
    let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0, -0.5]), 1.0).unwrap();
    let mut metadata = Metadata {
        created_at: "1795241427".to_owned(),
        model_name: Some("plane".to_owned()),
        description: Some("1 + 2 a - 0.5 b".to_owned()),
        ..options.metadata.clone()
    };
    metadata.hyperparameters.insert("alpha".to_owned(), 0.5);
    metadata.metrics.insert("r2".to_owned(), 0.98);
    let features = ["a", "b"].map(Value::from).to_vec();
    metadata.custom.insert("apr.features".to_owned(), features);
    metadata.custom.insert("team".to_owned(), "planes");
    let options = options.clone().with_metadata(metadata);
    to_vec(&model, ModelType::LinearRegression, &options).unwrap()
}

pub(crate) fn buyer() -> RecipientSecret {
    RecipientSecret::from_bytes(&[7; 32])
}

pub(crate) fn maker() -> SigningKey {
    SigningKey::from_seed(&[8; 32])
}

/// The model of two features with a license.
pub(crate) fn licensed() -> Vec<u8> {
    let license = License {
        uuid: "0f5c".to_owned(),
        expiry: Some("2999-12-31".to_owned()),
        seats: Some(10),
        licensee: Some("Example Ltd".to_owned()),
        tier: LicenseTier::Team,
        ..License::default()
    };
    let metadata = Metadata { license: Some(license), ..Metadata::default() };
    linear(&SaveOptions::default().with_metadata(metadata))
}

/// The same randomness in every run.
struct Counted(u8);

impl Rng for Counted {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), apr_crypto::Error> {
        for byte in out {
            self.0 = self.0.wrapping_mul(5).wrapping_add(17);
            *byte = self.0;
        }
        Ok(())
    }
}

/// A safetensors file, sealed, the same in every run.
pub(crate) fn sealed(file: &[u8], options: &SealOptions<'_>) -> Vec<u8> {
    let header = st_core::Header::from_bytes(file, &st_core::ReadOptions::STRICT).unwrap();
    let tensors = header.iter().map(|info| {
        let shape: Vec<u64> = info.shape().iter().map(|&dim| dim as u64).collect();
        let part = Part::tensor(info.name(), info.dtype().name(), shape, info.byte_len());
        (info.file_range().start, part)
    });
    let plan = Plan::of_file(file.len() as u64, tensors).unwrap();
    let options = options.clone().with_private("file.name", "model.safetensors");
    apr_sealed::to_vec(&plan, file, &options, &mut Counted(1)).unwrap()
}

/// A file with this protection, the same in every run.
pub(crate) fn protected(file: &[u8], protection: &Protection<'_>) -> Vec<u8> {
    let model = RawModel::open(file, &Access::default(), &ReadOptions::STRICT).unwrap();
    model.to_vec_protected(protection, &mut Counted(1)).unwrap()
}

/// The key line of a public key.
pub(crate) fn line(key: impl Into<PublicKey>) -> String {
    key.into().to_string()
}

/// A GGUF file with keys of every kind and two quantized tensors.
fn gguf() -> Vec<u8> {
    let values: Vec<f32> = (0..64).map(|idx| idx as f32 / 8.0 - 3.0).collect();
    let mut builder = GgufBuilder::new();
    let words = ["<s>", "</s>", "cat", "dog", "bird", "fish", "fox", "owl", "elk", "ant"];
    builder.set("general.architecture", "demo").unwrap();
    builder.set("general.name", "two layers").unwrap();
    builder.set("demo.block_count", 2_u32).unwrap();
    builder.set("demo.rate", 0.1_f32).unwrap();
    builder.set("demo.tied", false).unwrap();
    builder.set_texts("demo.words", words).unwrap();
    builder.set("general.file_type", 7_u32).unwrap();
    builder.set("general.quantization_version", 2_u32).unwrap();
    let data = [
        ("blk.0.weight", Dtype::Q8_0, &[2, 32][..], 64),
        ("blk.1.weight", Dtype::Q4_0, &[2, 32], 64),
        ("norm.weight", Dtype::F32, &[4], 4),
        ("head.weight", Dtype::F16, &[2, 4], 8),
    ];
    let data: Vec<Vec<u8>> = data
        .into_iter()
        .map(|(name, format, shape, count)| {
            builder.add_tensor(name, format, shape).unwrap();
            let mut bytes = vec![0; format.byte_len_of_rows(count, 1).unwrap() as usize];
            let quantizer = Quantizer::new(format).unwrap();
            quantizer.quantize(&values[..count as usize], count as usize, &mut bytes).unwrap();
            bytes
        })
        .collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    builder.layout().unwrap().to_vec(&data).unwrap()
}

/// An `.apr` file of version 2 with a quantized tensor in it.
fn tensors() -> Vec<u8> {
    let ones: Vec<u8> = (0..6).flat_map(|value| (value as f32).to_le_bytes()).collect();
    let views = [
        v2::TensorView::new("block.0.weight", v2::AprType::F32, &[2, 3], &ones).unwrap(),
        v2::TensorView::new("block.1.weight", v2::AprType::F32, &[2, 3], &ones).unwrap(),
        v2::TensorView::new("packed", v2::AprType::AprQ4, &[32], &[7; 18]).unwrap(),
    ];
    let mut metadata = v2::Metadata::new("tiny");
    metadata.name = Some("two blocks".to_owned());
    metadata.other.insert("hidden_size".to_owned(), v2::Json::from(3));
    v2::to_vec(&views, &v2::WriteOptions::new(metadata)).unwrap()
}
