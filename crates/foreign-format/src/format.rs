//! The formats, with a title and help for each.

macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $title:expr, $help:expr;)*) => {
        /// A format that is recognized by its content.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $variant,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// A stable identifier: lower case, no spaces.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// A noun with its article, to complete "this is ...".
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// What to do with such a file.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

const NOT_READ: &str = "`apr` does not read it: use the program that wrote it";

/// Whether models of tree libraries, programs for devices and broken pointers are recognized: not in the npm package, which is bound in size.
pub(crate) const NAMES_TOOLS: bool = !cfg!(apr_small);

/// Title of formats that the npm package does not recognize.
const UNNAMED: &str = "a file of another program";

/// Advice about other programs. The npm package, which is bound in size, has the general one.
const fn in_full(advice: &'static str, general: &'static str) -> &'static str {
    if cfg!(apr_small) { general } else { advice }
}
const CONVERT: &str = "convert it, which runs nothing in it: `apr convert FILE OUT.safetensors`";
const PICKLE: &str = "convert its arrays, which runs nothing in it: `apr convert FILE OUT.safetensors`; a model of scikit-learn that should predict \
     is exported where it was trained: apr.sklearn.export in Python";
const LLAMA_CPP: &str = "this format was replaced by GGUF in 2023: download a GGUF version of the model";
const UNPACK: &str = "unpack it first";
const NO_MODEL: &str = "this file holds no model: name a model file";
const TABLE_READ: &str = in_full(
    "this file holds a table, not a model; `apr train --data` and `apr predict --input` read it",
    NO_MODEL,
);
const TABLE: &str = in_full(
    "this file holds a table, not a model; as training data or input rows, save it as CSV: \
     pandas.read_orc(FILE).to_csv(OUT, index=False), or read_excel",
    NO_MODEL,
);
const DOWNLOAD: &str = "the server sent an error or login page instead of the model: check the address and the access rights, then download it \
     again";

formats! {
    /// `torch.save` since PyTorch 1.6: a ZIP archive with a pickle and raw storages.
    Torch, "torch", "a PyTorch checkpoint (a ZIP archive with a pickle)", CONVERT;
    /// `torch.save` before PyTorch 1.6: pickles and raw storages, one after the other.
    TorchLegacy, "torch-legacy", "a PyTorch checkpoint (legacy format, pickles)", CONVERT;
    /// `torch.jit.save`.
    TorchScript, "torchscript", "a TorchScript program", CONVERT;
    /// `torch.export.save`.
    TorchExport, "torch-export", "a PyTorch exported program (.pt2)", CONVERT;
    /// An index of shards of PyTorch: names of tensors and files. Those of safetensors are [`ShardIndex`](Self::ShardIndex).
    TorchIndex, "torch-index", "an index of PyTorch checkpoints", CONVERT;
    /// A pickle of another kind: joblib, scikit-learn, NumPy.
    Pickle, "pickle", "a pickle (joblib, scikit-learn or other)", PICKLE;
    /// One array of NumPy.
    Npy, "npy", "a NumPy .npy array", CONVERT;
    /// Several arrays of NumPy in a ZIP archive.
    Npz, "npz", "a NumPy .npz archive", CONVERT;
    /// Keras 3: a ZIP archive with JSON and HDF5.
    Keras, "keras", "a Keras model (.keras)", CONVERT;
    /// HDF5: Keras `.h5` and many others.
    Hdf5, "hdf5", "an HDF5 file (Keras .h5 or other)", CONVERT;
    /// NetCDF before version 4, which is HDF5.
    NetCdf, "netcdf", "a NetCDF file (classic format)",
        in_full("read it with scipy.io.netcdf_file or xarray and save the arrays as safetensors", NOT_READ);
    /// MATLAB, levels 5 and 7.3.
    Mat, "mat", "a MATLAB .mat file",
        in_full("read it with scipy.io.loadmat (version 7.3: h5py) and save the arrays as safetensors", NOT_READ);
    /// ONNX.
    Onnx, "onnx", "an ONNX model", CONVERT;
    /// ONNX with operators of `ai.onnx.ml`: trees, linear models, scalers. Not recognized by its first bytes: a reader of the graph finds them.
    OnnxMl, "onnx-ml", in_full("an ONNX-ML model (trees or linear models as attributes of operators)", "an ONNX model"),
        in_full("`apr` does not run it: ONNX Runtime does; a model of scikit-learn is exported where it was trained: apr.sklearn.export in Python", NOT_READ);
    /// XGBoost: JSON, UBJSON, and the binary format of old versions.
    XgBoost, "xgboost", "an XGBoost model",
        in_full("`apr` does not read it: in Python, xgboost.Booster(model_file=FILE) does; `apr train gradient-boosting` trains trees for `apr predict`", NOT_READ);
    /// LightGBM: the text that `save_model` writes.
    LightGbm, "lightgbm", in_full("a LightGBM model", UNNAMED),
        in_full("`apr` does not read it: in Python, lightgbm.Booster(model_file=FILE) does; `apr train gradient-boosting` trains trees for `apr predict`", NOT_READ);
    /// LightGBM: the JSON of `dump_model`, which no version of LightGBM reads again.
    LightGbmDump, "lightgbm-dump", in_full("a LightGBM model as JSON (dump_model)", UNNAMED),
        in_full("`apr` does not read it, nor does LightGBM, which loads the file of save_model; `apr train gradient-boosting` trains trees for `apr predict`", NOT_READ);
    /// CatBoost: `.cbm` and JSON.
    CatBoost, "catboost", "a CatBoost model",
        in_full("`apr` does not read it: in Python, catboost.CatBoost().load_model(FILE) does (format='json' for JSON); `apr train gradient-boosting` \
         trains trees for `apr predict`", NOT_READ);
    /// skops: estimators of scikit-learn as JSON and arrays in a ZIP archive.
    Skops, "skops", "a .skops file of scikit-learn models",
        in_full("`apr` does not read it: load it with skops.io.load(FILE, trusted=...) and export the estimator with apr.sklearn.export in Python", NOT_READ);
    /// A program of `ExecuTorch`.
    ExecuTorch, "executorch", in_full("an ExecuTorch program (.pte)", UNNAMED),
        in_full("it is compiled for a device, and `apr` does not read it: convert the PyTorch checkpoint that it was made of", NOT_READ);
    /// An engine of TensorRT.
    TensorRt, "tensorrt", "a TensorRT engine",
        in_full("it is compiled for one GPU, and `apr` does not read it: convert the ONNX model or checkpoint that it was made of", NOT_READ);
    /// The graph of OpenVINO IR.
    OpenVino, "openvino", in_full("the graph of an OpenVINO model (IR)", UNNAMED),
        in_full("`apr` does not read OpenVINO IR: convert the ONNX model or checkpoint that it was made of", NOT_READ);
    /// The weights beside the graph of OpenVINO IR: bytes that only the graph describes, so recognized by the file beside it.
    OpenVinoWeights, "openvino-weights", in_full("the weights of an OpenVINO model (IR), which the .xml file beside it describes", UNNAMED),
        in_full("`apr` does not read OpenVINO IR: convert the ONNX model or checkpoint that it was made of", NOT_READ);
    /// UBJSON of another kind.
    Ubjson, "ubjson", in_full("UBJSON (binary JSON)", UNNAMED),
        in_full("`apr` does not read it: name the model file itself", NOT_READ);
    /// The graph of a TensorFlow SavedModel.
    SavedModel, "saved-model", "the graph of a TensorFlow SavedModel", CONVERT;
    /// The index of a TensorFlow checkpoint of version 2.
    TfCheckpoint, "tf-checkpoint", "the index of a TensorFlow checkpoint", CONVERT;
    /// TensorFlow Lite.
    TfLite, "tflite", "a TensorFlow Lite model", CONVERT;
    /// Core ML.
    CoreMl, "coreml", "a Core ML model", "export the original model to safetensors instead";
    /// A MessagePack map, as Flax writes parameters.
    MessagePack, "msgpack", "MessagePack (Flax parameters or other)", CONVERT;
    /// The formats of llama.cpp before GGUF.
    Ggml, "ggml", "a GGML model", LLAMA_CPP;

    /// Apache Parquet.
    Parquet, "parquet", "an Apache Parquet table", TABLE_READ;
    /// Apache Arrow, Feather.
    Arrow, "arrow", "an Apache Arrow table (Feather)", TABLE_READ;
    /// A dataset of alimentar.
    Ald, "ald", "an .ald dataset", TABLE_READ;
    /// Apache ORC.
    Orc, "orc", "an Apache ORC table", TABLE;
    /// Apache Avro.
    Avro, "avro", "an Apache Avro file", TABLE;
    /// Microsoft Excel and other Office documents.
    Office, "office", "an Office document (.xlsx, .docx)", TABLE;
    /// SQLite.
    Sqlite, "sqlite", "an SQLite database",
        in_full("this file holds no model: save the table as CSV to train with it", NO_MODEL);
    /// Text in rows of equally many fields.
    Csv, "csv", "a table of text (CSV)",
        in_full("this file holds no model; `apr train` takes a table with --data, `apr predict` with --input", NO_MODEL);
    /// An index of shards of safetensors, or of files of unknown names.
    ShardIndex, "shard-index", "an index of shards",
        in_full("an index is recognized by its name: call it model.safetensors.index.json", NO_MODEL);
    /// Other JSON.
    Json, "json", "JSON text",
        in_full("this file holds no tensors: name the model file that lies beside it, for example model.safetensors", NO_MODEL);
    /// Other text.
    Text, "text", "plain text",
        in_full("this file holds no model; if it was downloaded, read it: it may be the server's error message", NO_MODEL);
    /// HTML.
    WebPage, "web-page", "a web page", DOWNLOAD;
    /// XML.
    Xml, "xml", "XML text",
        in_full("`apr` reads no models in XML; if the file was downloaded as something else, read it: it may be the server's error message", NO_MODEL);
    /// What servers send as JSON instead of a file.
    ErrorReply, "error-reply", "the error message of a server", DOWNLOAD;
    /// A Git LFS pointer, stored in place of a large file.
    GitLfs, "git-lfs", "a Git LFS pointer, not the model itself", "download the model it stands for: git lfs pull";
    /// A Git LFS pointer that was committed with the marks of a merge conflict.
    GitLfsConflict, "git-lfs-conflict", in_full("a Git LFS pointer with an unresolved merge conflict", UNNAMED),
        in_full("`git lfs pull` refuses it: edit it so that one oid and its size are left, without the lines of the conflict, commit that, then git lfs pull", NO_MODEL);
    /// Zeros only.
    Zeros, "zeros", "a file of zeros", in_full("the download was started and did not finish: download it again", "download it again");

    /// A ZIP archive of another kind.
    Zip, "zip", "a ZIP archive",
        in_full("unpack it first: unzip FILE", UNPACK);
    /// gzip.
    Gzip, "gzip", "a gzip file",
        in_full("unpack it first: gunzip FILE", UNPACK);
    /// zlib, as joblib writes it.
    Zlib, "zlib", "a zlib stream (a compressed joblib file or other)", PICKLE;
    /// What joblib before 0.10 compressed.
    ZFile, "zfile", "a compressed file of joblib before 0.10", PICKLE;
    /// Zstandard.
    Zstd, "zstd", "a Zstandard file",
        in_full("unpack it first: zstd -d FILE", UNPACK);
    /// bzip2.
    Bzip2, "bzip2", "a bzip2 file",
        in_full("unpack it first: bunzip2 FILE", UNPACK);
    /// xz.
    Xz, "xz", "an xz file",
        in_full("unpack it first: unxz FILE", UNPACK);
    /// lzma without a container.
    Lzma, "lzma", "an lzma file",
        in_full("unpack it first: unlzma FILE", UNPACK);
    /// LZ4 frames.
    Lz4, "lz4", "an LZ4 file",
        in_full("unpack it first: lz4 -d FILE", UNPACK);
    /// tar.
    Tar, "tar", "a tar archive",
        in_full("unpack it first: tar -xf FILE", UNPACK);
    /// 7-Zip.
    SevenZip, "7z", "a 7-Zip archive", UNPACK;
    /// RAR.
    Rar, "rar", "a RAR archive", UNPACK;
    /// ELF and Windows programs and libraries.
    Executable, "executable", "an executable", NO_MODEL;
    /// PDF.
    Pdf, "pdf", "a PDF document", NO_MODEL;
    /// PNG, JPEG and GIF.
    Image, "image", "an image", NO_MODEL;
}

impl Format {
    /// Whether it is text, which a reader of lines or tables may be meant to read.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(
            self,
            Self::Csv
                | Self::ShardIndex
                | Self::TorchIndex
                | Self::Json
                | Self::Text
                | Self::WebPage
                | Self::Xml
                | Self::ErrorReply
        )
    }

    /// Whether it is one compressed file, whatever is in it.
    #[must_use]
    pub const fn is_compressed(self) -> bool {
        matches!(
            self,
            Self::Gzip
                | Self::Zlib
                | Self::ZFile
                | Self::Zstd
                | Self::Bzip2
                | Self::Xz
                | Self::Lzma
                | Self::Lz4
        )
    }

    /// Whether loading it with its usual library can execute code from the file: it contains a pickle or a program.
    #[must_use]
    pub const fn can_run_code(self) -> bool {
        matches!(
            self,
            Self::Torch
                | Self::TorchLegacy
                | Self::TorchScript
                | Self::TorchExport
                | Self::Pickle
                | Self::Executable
        )
    }
}
