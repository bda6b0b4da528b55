//! Where passwords come from: a terminal that does not show them, files, descriptors; nowhere else.

use core::time::Duration;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::json;

use crate::sandbox::{Ran, Sandbox};

const PASSWORD: &str = "correct horse battery staple";

/// A run without a terminal of its own, whatever the tests are run from.
fn without_terminal(sandbox: &Sandbox, args: &[&str], input: &[u8]) -> Ran {
    let apr = sandbox.command(args);
    let mut command = Command::new("setsid");
    command.arg("-w").arg(apr.get_program()).args(apr.get_args()).current_dir(sandbox.path("."));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().into()
}

/// A run at a terminal: each answer is typed when its question has appeared. What the terminal showed, and the exit code.
fn at_terminal(sandbox: &Sandbox, args: &str, answers: &[(&str, &str)]) -> (String, i32) {
    let mut command = Command::new("script");
    let line = format!("{} {args}", env!("CARGO_BIN_EXE_apr"));
    command.args(["-qec", &line, "/dev/null"]).current_dir(sandbox.path("."));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let reader = thread::spawn({
        let answers: Vec<(String, String)> =
            answers.iter().map(|&(question, answer)| (question.to_owned(), answer.to_owned())).collect();
        move || {
            let (mut shown, mut piece) = (String::new(), [0; 256]);
            let mut answers = answers.into_iter().peekable();
            while let Ok(count @ 1..) = output.read(&mut piece) {
                shown.push_str(&String::from_utf8_lossy(&piece[..count]));
                if let Some((_, answer)) = answers.next_if(|(question, _)| shown.contains(question)) {
                    input.write_all(answer.as_bytes()).unwrap();
                }
            }
            shown
        }
    });
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(5));
    }
    let exit = child.wait().unwrap().code().unwrap_or(-1);
    (reader.join().unwrap(), exit)
}

#[test]
fn without_a_terminal_nothing_is_taken_for_a_password() {
    let sandbox = Sandbox::with_models();
    let made = sandbox.run(&["keygen", "encrypt", "-o", "l.key", "--password-file", "password.txt"]);
    assert_eq!(made.exit, 0);
    let before = sandbox.listing();
    let input = format!("{PASSWORD}\n{PASSWORD}\n");
    for args in [
        &["decrypt", "locked.apr", "-o", "n.apr"][..],
        &["decrypt", "locked.apr", "-o", "n.apr", "--ask-password"],
        &["encrypt", "model.apr", "-o", "n.apr", "--ask-password"],
        &["predict", "locked.apr", "-i", "rows.csv", "--ask-password"],
        &["check", "locked.apr", "--ask-password"],
        &["keygen", "sign", "-o", "n.key", "--ask-password"],
        &["key", "show", "l.key"],
    ] {
        let ran = without_terminal(&sandbox, args, input.as_bytes());
        assert_eq!(ran.exit, 2, "{args:?}\n{}", ran.stderr);
        assert!(
            ran.stderr.contains("error[cli-no-terminal]") && ran.stderr.contains("--password-fd"),
            "{args:?}"
        );
        assert_eq!(ran.stdout, "", "{args:?}");
    }
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn a_descriptor_gives_its_first_line() {
    let sandbox = Sandbox::with_models();
    let decrypt = |line: &str| sandbox.shell(&format!("apr decrypt locked.apr -o n.apr --force {line}"));
    for line in [
        format!("--password-fd 0 <<end\n{PASSWORD}\nend"),
        format!("--password-fd 3 3<<end\n{PASSWORD}\nsomething else\nend"),
        "--password-fd 9 9<password.txt".to_owned(),
        // The writer need not close the pipe.
        format!("--password-fd 0 < fifo & exec 5>fifo; echo {PASSWORD} >&5; wait $!"),
    ] {
        if line.contains("fifo") {
            assert_eq!(sandbox.shell("mkfifo fifo").exit, 0);
        }
        let ran = decrypt(&line);
        assert_eq!(ran.exit, 0, "{line}\n{}", ran.stderr);
    }
    for (code, line) in [
        ("ac-decryption", "--password-fd 0 </dev/null"),
        ("ac-decryption", "--password-fd 3 3<rows.csv"),
        ("cli-no-terminal", "--password-fd 7"),
        ("cli-no-terminal", "--password-fd 2147483647"),
        ("cli-usage", "--password-fd 1"),
        ("cli-usage", "--password-fd 2"),
        ("cli-usage", "--password-fd -1"),
        ("cli-usage", "--password-fd stdin"),
        ("cli-password", "--password-fd 0 </dev/zero"),
        ("df-not-regular", "--password-file /dev/stdin <password.txt | cat"),
    ] {
        let ran = decrypt(line);
        if !line.ends_with("cat") {
            assert!(ran.stderr.contains(&format!("error[{code}]")), "{line}\n{}", ran.stderr);
        }
    }
}

#[test]
fn standard_input_is_not_two_things() {
    let sandbox = Sandbox::with_models();
    let model = sandbox.read("locked.apr");
    for args in [
        &["decrypt", "-", "-o", "n.apr", "--password-fd", "0"][..],
        &["encrypt", "-", "-o", "n.apr", "--password-fd", "0"],
        &["check", "-", "--password-fd", "0"],
        &["check", "locked.apr", "-", "--password-fd", "0"],
        &["predict", "-", "-i", "rows.csv", "--password-fd", "0"],
        &["predict", "locked.apr", "-i", "-", "--password-fd", "0"],
        &[
            "encrypt",
            "-",
            "-o",
            "n.apr",
            "--recipient",
            "buyer.key.pub",
            "--sign",
            "maker.key",
            "--key-password-fd",
            "0",
        ],
    ] {
        let ran = sandbox.run_with_input(args, &model);
        assert_eq!(ran.exit, 2, "{args:?}\n{}", ran.stderr);
    }
}

#[test]
fn a_password_file_is_one_line() {
    let sandbox = Sandbox::with_models();
    let decrypt = |text: &[u8]| {
        sandbox.write("p.txt", text);
        sandbox.close("p.txt");
        let (exit, value) =
            sandbox.json(&["decrypt", "locked.apr", "-o", "n.apr", "--force", "--password-file", "p.txt"]);
        (exit, value["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(decrypt(PASSWORD.as_bytes()).0, 0);
    assert_eq!(decrypt(format!("{PASSWORD}\r\n").as_bytes()).0, 0);
    assert_eq!(decrypt(format!("{PASSWORD}\n\n").as_bytes()), (2, "cli-password".to_owned()));
    assert_eq!(decrypt(format!("{PASSWORD}\nmore").as_bytes()), (2, "cli-password".to_owned()));
    assert_eq!(
        decrypt(format!(" {PASSWORD}").as_bytes()),
        (4, "ac-decryption".to_owned()),
        "every byte counts"
    );
    assert_eq!(decrypt(&[b'x'; 4096]), (2, "cli-password".to_owned()));
    assert_eq!(decrypt(&[b'x'; 1 << 20]), (3, "df-too-large".to_owned()));
    // Opening with no password is a wrong password; nothing is made with one.
    assert_eq!(decrypt(b"\n"), (4, "ac-decryption".to_owned()));
    for args in [
        &["encrypt", "model.apr", "-o", "e.apr", "--password-file", "p.txt"][..],
        &["keygen", "sign", "-o", "e.key", "--password-file", "p.txt"],
    ] {
        let (exit, value) = sandbox.json(args);
        assert_eq!((exit, &value["error"]["code"]), (2, &json!("cli-password")), "{args:?}");
    }
    assert!(!sandbox.path("e.apr").exists() && !sandbox.path("e.key").exists());
}

#[test]
fn a_terminal_is_asked_and_shows_nothing() {
    let sandbox = Sandbox::with_models();
    let answer = format!("{PASSWORD}\n");
    let (shown, exit) =
        at_terminal(&sandbox, "decrypt locked.apr -o n.apr", &[("Password of locked.apr: ", &answer)]);
    assert_eq!(exit, 0, "{shown}");
    assert!(!shown.contains("horse"), "{shown}");
    let plain = sandbox.read("n.apr");
    assert_eq!(plain, sandbox.read("licensed.apr"));

    // A password that is new is asked for twice.
    let twice = [("New password of e.apr: ", "a b\n"), ("Once more: ", "a b\n")];
    let (shown, exit) = at_terminal(&sandbox, "encrypt model.apr -o e.apr --ask-password", &twice);
    assert_eq!(exit, 0, "{shown}");
    assert!(!shown.contains("a b"), "{shown}");
    assert_eq!(sandbox.shell("echo 'a b' | apr check e.apr --password-fd 0").exit, 0);

    let differ = [("New password of f.apr: ", "a b\n"), ("Once more: ", "a c\n")];
    let (shown, exit) = at_terminal(&sandbox, "encrypt model.apr -o f.apr --ask-password", &differ);
    assert!(exit == 2 && shown.contains("cli-password"), "{shown}");
    let (shown, exit) = at_terminal(
        &sandbox,
        "encrypt model.apr -o f.apr --ask-password",
        &[("New password of f.apr: ", "\n")],
    );
    assert!(exit == 2 && shown.contains("is empty"), "{shown}");
    assert!(!sandbox.path("f.apr").exists());
}

/// Whether the process was started with SIGINT ignored: programs it starts inherit that.
fn ignores_interrupt() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0
}

#[test]
fn ctrl_c_ends_the_question_and_nothing_is_written() {
    let sandbox = Sandbox::with_models();
    let before = sandbox.listing();
    let question = "Password of locked.apr: ";
    let (_, exit) = at_terminal(&sandbox, "decrypt locked.apr -o n.apr", &[(question, "corre\u{3}")]);
    // By the signal, as the shell tells it; where these tests run in the background, the signal is ignored.
    assert_eq!(exit, if ignores_interrupt() { 2 } else { 130 });
    let (shown, exit) = at_terminal(&sandbox, "decrypt locked.apr -o n.apr", &[(question, "\u{4}")]);
    assert!(exit == 2 && shown.contains("cli-no-terminal"), "{shown}");
    assert_eq!(sandbox.listing(), before);
}
