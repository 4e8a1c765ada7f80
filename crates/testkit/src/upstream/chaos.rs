//! Ready-made misbehaviour, by name: for the `chaos` program and for load with random faults.

use clap::ValueEnum;

use super::script::{Churn, Outcome, Part, Script, Tool};

/// One way in which an upstream misbehaves. Each has a tool `look` to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// Exits with code 7 on a call.
    ExitMidCall,
    /// Ends by a signal on a call.
    CrashMidCall,
    /// Exits at every start.
    CrashLoop,
    /// Answers no call.
    Hang,
    /// Does not answer `initialize`.
    HangAtInitialize,
    /// Does not answer `tools/list`.
    HangAtList,
    /// Takes five seconds to boot.
    SlowBoot,
    /// Answers a call with a line that never ends.
    EndlessLine,
    /// Answers a call with a line of 64 MiB.
    HugeLine,
    /// Answers `tools/list` with new pages for ever.
    EndlessPages,
    /// The same, with cursors of 1 MB.
    EndlessLargePages,
    /// Answers a call with an image of 3 MiB.
    LargeImage,
    /// Answers a call after frames that are no messages.
    MalformedFrames,
    /// Prints fifty lines before the handshake.
    Banner,
    /// Writes to stderr without a pause.
    StderrFlood,
    /// Announces changed tools a thousand times per second.
    Storm,
    /// Changes every description with every listing.
    ChangingDescriptions,
    /// Flips every annotation with every listing.
    FlippingAnnotations,
    /// Dies on a call and leaves a child that keeps its stdout open.
    Orphan,
    /// Stops by SIGSTOP on a call.
    Freeze,
    /// Ends the answer to a call in its middle.
    Truncate,
}

impl Fault {
    pub fn script(self) -> Script {
        let mut script = Script::new([Tool::read_only("look").outcome(self.outcome())]);
        match self {
            Self::CrashLoop => script.start.exit_code = Some(1),
            Self::HangAtInitialize => script.hang_at = vec!["initialize".to_owned()],
            Self::HangAtList => script.hang_at = vec!["tools/list".to_owned()],
            Self::SlowBoot => script.start.boot_ms = 5_000,
            Self::EndlessPages => script.endless_cursor_bytes = Some(1),
            Self::EndlessLargePages => script.endless_cursor_bytes = Some(1_000_000),
            Self::Banner => script.start.banner = vec!["Welcome!".to_owned(); 50],
            Self::StderrFlood => script.start.stderr_flood = true,
            Self::Storm => script.storm_per_second = 1_000,
            Self::ChangingDescriptions => script.churn = Churn::Descriptions,
            Self::FlippingAnnotations => script.churn = Churn::Annotations,
            Self::Orphan => {
                script.start.grandchild = true;
                script.start.grandchild_holds_stdout = true;
            }
            _ => (),
        }
        if matches!(self, Self::ChangingDescriptions | Self::FlippingAnnotations) {
            script.storm_per_second = 10;
        }
        script
    }

    fn outcome(self) -> Outcome {
        match self {
            Self::ExitMidCall | Self::Orphan => Outcome::Exit(7),
            Self::CrashMidCall => Outcome::Crash,
            Self::Hang => Outcome::Hang,
            Self::EndlessLine => Outcome::EndlessLine,
            Self::HugeLine => Outcome::Huge { mebibytes: 64 },
            Self::LargeImage => Outcome::Large {
                part: Part::Image,
                mebibytes: 3,
            },
            Self::MalformedFrames => Outcome::Frames(malformed_frames()),
            Self::Freeze => Outcome::Freeze,
            Self::Truncate => Outcome::Truncate,
            _ => Outcome::Echo,
        }
    }
}

/// Lines that are no message to anyone, each with its line break.
pub fn malformed_frames() -> Vec<Vec<u8>> {
    let texts = [
        "",
        " ",
        "\r",
        "null",
        "true",
        "5",
        "NaN",
        "\"text\"",
        "[]",
        "[1,2]",
        "{}",
        "{",
        "}",
        "{\"a\":}",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"id":99999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"no such id","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
        r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1e300,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":18446744073709551616,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":[1],"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99998,"result":{},"error":{"code":1,"message":"both"}}"#,
        r#"{"jsonrpc":"2.0","id":99998}"#,
        r#"{"jsonrpc":"2.0","id":99998,"error":"no object"}"#,
        r#"{"jsonrpc":"2.0","id":99998,"error":{"code":"text","message":5}}"#,
        r#"{"jsonrpc":"2.0","id":99997,"id":99996,"result":{},"result":{"b":1}}"#,
        r#"{"jsonrpc":"2.0","method":5}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":null}"#,
        r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":"text"}"#,
        r#"{"jsonrpc":"2.0","id":"r","method":"no/such/method"}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":99995,\"result\":{\"x\":NaN}}",
        "{\"jsonrpc\":\"2.0\",\"id\":99995,\"result\":{\"x\":\"\\ud800\"}}",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":99995,\"result\":{}}",
        "Content-Length: 20",
        "\u{1b}[2J\u{1b}]0;title\u{7}",
    ];
    let mut frames: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).to_vec();
    frames.push(b"\xff\xfe\x00 no text".to_vec());
    frames.push(b"{\"jsonrpc\":\"2.0\",\"id\":99994,\"result\":\"\xc3\x28\"}".to_vec());
    frames.push(b"\0\0\0\0".to_vec());
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        frames.push(format!("{open}1{close}").into_bytes());
    }
    for frame in &mut frames {
        frame.push(b'\n');
    }
    frames
}
