//! Codes of this program.

use located_error::{Category, Entry, remedy};

use super::entry;

/// Declares the codes with their categories, meanings and remedies.
macro_rules! codes {
    ($($name:ident = $code:literal ($category:ident), $meaning:expr => $remedy:expr;)*) => {
        $(pub(crate) const $name: &str = $code;)*

        pub(super) const ENTRIES: &[Entry] = &[$(entry($name, Category::$category, $meaning, $remedy)),*];
    };
}

codes! {
    CODE_USAGE = "cli-usage" (Usage),
        "The command line has an unknown command or option, lacks a value, or asks for things that exclude each \
         other."
        => "see `apr --help`, or `apr COMMAND --help` for the options of one command";
    CODE_OUTPUT_EXISTS = "cli-output-exists" (Usage),
        "The output is there already. Nothing is overwritten unless you say so."
        => "choose another name, or add --force to replace it";
    CODE_OUTPUT_FORMAT = "cli-output-format" (Usage),
        "The ending of the output's name is not that of a format that the command writes. Under a foreign ending, other \
         programs and people would take the file for something it is not."
        => "name the output .safetensors, .gguf, .apr, .npz or .npy; with --format, `convert` and `quantize` accept any name";
    CODE_OUTPUT_KIND = "cli-output-kind" (Usage),
        "The output exists and is no regular file (no folder, for `shard`): replacing a device, a pipe or a folder \
         by a file would do harm, so not even --force does it."
        => "choose another name; to write to a pipe, use `-` as the output";
    CODE_NO_SPACE = "cli-no-space" (Io),
        "The file system of the output says that it has less free space than the new file needs. Nothing was written."
        => "free some space, write to another disk, or choose a smaller --type";
    CODE_OUTPUT_TERMINAL = "cli-output-terminal" (Usage),
        "The output `-` is standard output, which is a terminal here, and model files are binary."
        => "redirect it (`> out.safetensors`), pipe it, or name a file";
    CODE_NOTHING_SELECTED = "cli-nothing-selected" (Usage),
        "No tensor is left after --select and --exclude. An empty model is hardly what was meant."
        => "list the names with `apr tensors FILE`; patterns match whole names, so write '*.weight', not 'weight'";
    CODE_NO_TENSORS = "cli-no-tensors" (Unsupported),
        "The file has no tensor that could be converted. Models of ONNX-ML have their numbers in attributes of operators, libraries of trees \
         in formats of their own; what is left would be an empty file that looks like a model."
        => "`apr inspect FILE` shows what the file has instead; if an empty file is what you want, `apr convert --allow-empty` writes one";
    CODE_NOTHING_CONVERTED = "cli-nothing-converted" (Usage),
        "No tensor of the model would become anything else: it has no matrix of weights, or all of them are of that type \
         already. A copy would be larger or the same, and it is not written."
        => "keep the file as it is, or choose another --type; `apr tensors FILE` shows shapes and types, docs/quantize.md says what is \
         quantized";
    CODE_CODED = "cli-already-quantized" (Usage),
        "The tensors are codes and scales of another quantization (FP8, GPTQ, AWQ, bitsandbytes, MLX, ...), and not numbers: a code or a scale \
         that is quantized again makes a model that is silently wrong."
        => "of the folder of a language model, `apr convert FOLDER OUT.gguf --type TYPE` decodes FP8, GPTQ, compressed-tensors and MXFP4; else quantize the \
            model as it was before, its 16-bit or 32-bit file";
    CODE_UNKNOWN_CODE = "cli-unknown-code" (Usage),
        "`apr explain` knows the codes that error messages show in brackets, and this is none of them."
        => "list all codes with `apr explain`";
    CODE_NO_TERMINAL = "cli-no-terminal" (Usage),
        "A password is needed, but the program has no terminal, or its input ended. A password is not \
         taken from standard input unless you say so, because what stands there may be a model."
        => "name its source: --password-file PATH or --password-fd N (of a locked key file --key-password-file, --key-password-fd)";
    CODE_PASSWORD = "cli-password" (Usage),
        "The password cannot be used: it is empty, was typed in two ways, is longer than a terminal's line, or its file has \
         more than one line. Nothing was made or opened with it."
        => "give the same line of 1 to 4,095 bytes wherever it is asked for; without an option it is asked for at the terminal";
    CODE_INFERENCE_KEY = "cli-inference-key" (Verification),
        "The key for encrypted requests is not the one that it must be: the served model is bound to another one, or the server has \
         another one, or none that a signer vouches for."
        => "use the key that the owner of the model signed; `apr sign MODEL --inside --inference-key KEY` binds a model to a key";
    CODE_SERVICE = "cli-service" (Io),
        "The server of --private did not answer as `apr serve` does."
        => "check the address, and that the server was started with --inference-key";
    CODE_SECRET_ARGUMENT = "cli-secret-argument" (Usage),
        "A secret key stands in the command line, where every user of the machine can read it and the shell's history keeps it. \
         No command takes one there."
        => "consider the key known: make a new one with `apr keygen`, and name key files, not keys";
    CODE_SHARDS = "cli-shards" (Invalid),
        "The index and the shards of a model do not agree: a shard is missing, a tensor is not where the index \
         says or is not listed, or the total size differs. A program that loads the model would miss tensors or \
         load stale ones."
        => remedy::SHARDS;
    CODE_TABLE_SYNTAX = "cli-table-syntax" (Invalid),
        "The table breaks the rules of comma-separated values or JSON lines: a quote stands where none may, a line is empty \
         or not one JSON object, the text is not UTF-8, or a record is longer than 16 MiB. Whatever has two readings is refused, because a table \
         read wrongly gives predictions that look right."
        => "mend the line the message points to; fields with commas, quotes or line feeds stand in double quotes";
    CODE_TABLE_CELL = "cli-table-cell" (Invalid),
        "A cell that has to be a number is empty, is none, or is beyond what a 32-bit float can hold. A missing value \
         has no meaning that a model could use."
        => "fill in a value, or remove the row";
    CODE_TABLE_COLUMNS = "cli-table-columns" (Invalid),
        "The columns of the table are not those that are needed: a row has more or fewer than the first one, one that \
         the model was trained on is missing, or their number is not that of its features."
        => "compare the columns with what was asked for; `apr inspect MODEL` lists the features of a model, and --delimiter \
         takes other separators than commas";
    CODE_NO_PREDICTION = "cli-no-prediction" (Usage),
        "Some files hold numbers or settings that predict nothing: lists of labels, models that are not trained, types \
         of users' own."
        => "`apr inspect --verify MODEL` says what it is";
    CODE_NOT_CARRIED = "cli-not-carried" (Usage),
        "The other format has no place for a part of the model: an element type, a kind of model. Nothing is dropped \
         or changed in silence, so nothing was written."
        => "leave the part out with --exclude, or choose another format with --format";
    CODE_FOREIGN_PAYLOAD = "cli-foreign-payload" (Unsupported),
        "An .apr file may hold a type that only the program that wrote it knows. Header, metadata and checksum can be \
         read, but nothing says what the bytes of the payload mean."
        => "use the program that made it; `apr inspect` and `apr check` work on the rest of the file";
    CODE_NO_SIGNATURE = "cli-no-signature" (Verification),
        "There is no signature: neither beside the file or folder, under the names that signatures usually have, nor inside it. Without one \
         nothing is known about where it comes from."
        => "fetch the signature too, or name it with --signature";
    CODE_SIGNED_NAME = "cli-signed-name" (Verification),
        "The signature is right, and it was made of a file or folder with another name, as its comment or its list says. Files \
         of one signer can be exchanged under their names; `apr verify` warns, and with --strict it refuses."
        => "use the file under the name it was signed with; if you renamed it yourself, verify it without --strict";
    CODE_NOT_COVERED = "cli-not-covered" (Verification),
        "The folder holds files that the signature does not cover: what the signer ignored, or a `.git` that was put there. \
         `apr verify` lists them, and with --strict it refuses. A `.git/config` can make git run programs."
        => "remove them, or verify without --strict if nothing uses them";
    CODE_STDIN_TOO_LARGE = "cli-stdin-too-large" (Invalid),
        "Input from a pipe is kept in a temporary file, because a model has to be read in any order, and that file \
         is limited to 64 GiB."
        => "store the input in a file and name it";
    CODE_REMOTE = "cli-remote" (Usage),
        "The command reads or writes files of this machine, and what was named is a URL. Commands that look at models read URLs; \
         those that write beside a file, change it, or verify a signature beside it do not."
        => "download the file first with `apr get URL -o DIR`, and name the copy";
    CODE_PLAN = "cli-plan" (Invalid),
        "The file is not the plan of a job that this program can do, or what the job has stored beside its outputs does not belong to it: it was made by \
         another version of the program, or changed by hand."
        => "plan the job again with `apr plan`";
    CODE_INPUT_CHANGED = "cli-input-changed" (Verification),
        "A file is another one than when the job was planned: its length, its time of modification, its ETag or its digest differ. A result of two \
         versions would be none of both, so the task is not done."
        => "plan the job again, with the files as they are now";
    CODE_JOB_OUTPUT = "cli-job-output" (Verification),
        "An output that a task has recorded is missing, has another length, or another SHA-256. It was removed or changed after the task had ended."
        => "`apr abort PLAN` removes what the job has stored; plan and run it again";
    CODE_TASKS_MISSING = "cli-tasks-missing" (Io),
        "The job cannot be finished, because some of its tasks have no record: they were not run, are being done, or their workers were killed."
        => "`apr run-task PLAN all` does what is missing; then run `apr finish` again";
    CODE_NOT_PUBLISHED = "cli-not-published" (Usage),
        "The crates that an embedded program is built from are not published in a registry. A project that named them by version \
         would download and run whatever another author had published under the same names."
        => "check out the project and give its folder: `apr embed MODEL -o DIR --crates CHECKOUT`";
    CODE_FOREIGN_FORMAT = "cli-foreign-format" (Unsupported),
        "The content is that of another format. This version reads safetensors files, sharded safetensors models, \
         .apr files, sealed files and GGUF files; `shard` and `unshard` work on safetensors and GGUF. For `apr check`, such a file is \
         an invalid model file: its exit code is 3."
        => "convert the file to safetensors with the library that made it";
    CODE_IO = "cli-io" (Io),
        "The operating system refused to open, read or write a file: it does not exist, permission is missing, or \
         the disk is full or faulty. No output was replaced."
        => "check the path, its permissions and the free space";
    CODE_STDOUT = "cli-stdout" (Io),
        "Standard output did not take what was written to it, for example because the disk behind a redirection is \
         full."
        => "check the place standard output goes to";
    CODE_CLOSED_PIPE = "cli-closed-pipe" (Stopped),
        "The program that reads standard output stopped reading, as `head` does. This is no error: the command \
         ends quietly, and no message is shown."
        => "nothing";
    CODE_DEMO = "cli-demo" (Internal),
        "A step of the demonstration did not give the result it always gives."
        => "please report it, with the output of `apr demo -v` and your platform";
    CODE_INTERNAL = "cli-internal" (Internal),
        "The program met a state that it takes to be impossible. This is a defect in `apr`, never a fault of the \
         input: files of any content have to lead to a result or to one of the other codes."
        => "please report it, with the command line and, if you can share it, the file";
}
