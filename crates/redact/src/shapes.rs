//! Secrets that are known by their shape or by the name of the member they stand in.
//!
//! All shapes are alternatives of one expression. An alternative must not keep a failing attempt
//! alive across text in which other alternatives match: each match would then be searched to the
//! end of the text, which makes replacing quadratic. Hence no open-ended repetition before the
//! literal that identifies a shape.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::MASK;

/// Each shape begins with text that does not turn up by chance and is long enough to be a token.
/// Groups at the beginning and at the end of a match stay: they say what kind of secret it was.
const SHAPES: &[&str] = &[
    // GitHub.
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    // GitLab: personal, deploy, runner, job, trigger, feed, mail, agent, SCIM and OAuth tokens.
    r"\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[A-Za-z0-9_-]{20,}",
    // Slack: tokens (also of its own web client), and addresses that anyone may post to.
    r"\bxox[abcdeoprs]-[A-Za-z0-9%./+=_-]{10,}",
    r"\bxapp-[A-Za-z0-9-]{10,}",
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_-]{16,}",
    // AWS access key identifiers. Secret access keys have no shape; their label is in NAMES.
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    // OpenAI, Anthropic and others; Stripe writes it with underscores.
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}",
    // Google: API keys, OAuth access tokens, OAuth client secrets.
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bGOCSPX-[A-Za-z0-9_-]{20,}",
    // npm, PyPI, RubyGems.
    r"\bnpm_[A-Za-z0-9]{30,}",
    r"\bpypi-[A-Za-z0-9_-]{32,}",
    r"\brubygems_[A-Za-z0-9]{32,}",
    // Hugging Face, SendGrid, Atlassian, HashiCorp Vault, DigitalOcean, Linear, Notion, Supabase.
    r"\bhf_[A-Za-z0-9]{24,}",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"\bAT(?:ATT|CTT|BB)[A-Za-z0-9_=-]{20,}",
    r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}",
    r"\bdo[opr]_v1_[A-Za-z0-9]{32,}",
    r"\blin_(?:api|oauth)_[A-Za-z0-9]{20,}",
    r"\b(?:ntn_[A-Za-z0-9]{20,}|secret_[A-Za-z0-9]{40,})",
    r"\b(?:sbp_[A-Za-z0-9]{20,}|sb_secret_[A-Za-z0-9_-]{20,})",
    // Groq, xAI, Perplexity, Tavily, Replicate, Figma, Docker, Sentry, Netlify, Grafana, Shopify.
    r"\b(?:gsk_|xai-|pplx-|tvly-|r8_|figd_|dckr_pat_|sntry[su]_|nfp_|glsa_|shp(?:at|ca|pa|ss)_)[A-Za-z0-9_-]{20,}",
    // age.
    r"\bAGE-SECRET-KEY-1[A-Za-z0-9]{20,}",
    // JSON Web Tokens: a base64 object, a dot, more base64.
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?",
    // Private keys in PEM or PGP armour. One that was cut off goes to the end of the text.
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    // HTTP credentials.
    r"(?i-u:(\b(?:bearer|basic)[\t ]+)[A-Za-z0-9._~+/=-]{12,})",
    // A password in a URL; and in a connection string, whose names are not secrets elsewhere.
    r"(?i-u:((?:https?|wss?|s?ftps?|ssh|git|smtps?|imaps?|ldaps?|postgres(?:ql)?|mysql|mariadb|mongodb|srv|rediss?|valkeys?|amqps?|nats|kafka|mssql|sqlserver|clickhouse|cockroachdb|libsql|socks5h?)://))USERINFO(@)",
    r"(?i-u:(;[\t ]?pwd=))UNQUOTED",
    // The values of members with a secret name: quoted as in JSON, or bare as in a shell.
    "(NAMES\\\\*[\"']?[\\t\\n\\r ]*[:=][\\t\\n\\r ]*\\\\*\")(?:[^\"\\\\\\r\\n]|\\\\+[^\"\\\\\\r\\n])*",
    "(NAMES\\\\*[\"']?[\\t ]*[:=][\\t ]*\\\\*')[^'\\r\\n]*",
    "(NAMES\\\\*[\"']?[\\t ]*[:=][\\t ]*)UNQUOTED",
];

/// What the placeholders in [`SHAPES`] stand for.
const PLACEHOLDERS: &[(&str, &str)] = &[
    (r"\b", r"(?-u:\b)"),
    (
        "USERINFO",
        r#"[^\x00-\x20/?#@:"'<>\\]*:[^\x00-\x20/?#@"'<>\\]+"#,
    ),
    ("UNQUOTED", r#"[^\x00-\x20"'&;,)}\]>\\]+"#),
    ("NAMES", NAMES),
];

/// The end of a name whose value is a secret. Stricter than names of variables and options, which
/// an operator chose: in data, `key` and `next_page_token` are ordinary.
const NAMES: &str = concat!(
    r"(?:(?i-u:passw(?:or)?d|passphrase",
    r"|secret(?:[_-]?access)?(?:[_-]?key)?",
    r"|(?:api|access|private|signing|encryption|master|account)[ _-]?key",
    r"|(?:access|auth|refresh|id|session|bearer|api|bot|security)[_-]?token)",
    // A token is one by its name alone, or as the name of an environment variable.
    r"|(?:^|[^A-Za-z0-9_-])(?i-u:token)|[A-Z0-9]_TOKEN)",
);

/// Fewer letters without quotes around them are a word of a sentence.
const SHORTEST_BARE: usize = 6;

/// The compiled expressions. Cloning is cheap and compiling is not, so all redactors share them.
#[derive(Debug, Clone)]
pub(super) struct Shapes {
    all: Regex,
    name: Regex,
}

impl Shapes {
    pub(super) fn compiled() -> Result<Self, regex::Error> {
        static COMPILED: LazyLock<Result<Shapes, regex::Error>> = LazyLock::new(Shapes::compile);
        COMPILED.clone()
    }

    fn compile() -> Result<Self, regex::Error> {
        let mut all = SHAPES.join("|");
        for (placeholder, meaning) in PLACEHOLDERS {
            all = all.replace(placeholder, meaning);
        }
        Ok(Self {
            all: Regex::new(&all)?,
            name: Regex::new(&format!("{NAMES}$"))?,
        })
    }

    /// Whether there may be something to replace. Where this is false there is nothing, also not
    /// in JSON whose text or meaning this is.
    pub(super) fn may_match(&self, text: &str) -> bool {
        self.all.is_match(text)
    }

    pub(super) fn replace<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Most text has none, and to find that out needs no captures.
        if !self.may_match(text) {
            return Cow::Borrowed(text);
        }
        match self.all.replace_all(text, replacement) {
            Cow::Owned(replaced) if replaced != text => Cow::Owned(replaced),
            _ => Cow::Borrowed(text),
        }
    }

    /// Whether a member of this name has a secret value.
    pub(super) fn is_secret_name(&self, name: &str) -> bool {
        self.name.is_match(name)
    }
}

/// What a match becomes: itself if its value is no secret.
fn replacement(found: &Captures<'_>) -> String {
    let whole = found.get_match();
    let mut groups = found.iter().skip(1).flatten();
    let Some(prefix) = groups.next() else {
        return MASK.to_owned();
    };
    if let Some(suffix) = groups.next() {
        let user = whole.as_str()[prefix.len()..].split(':').next();
        return format!(
            "{}{}:{MASK}{}",
            prefix.as_str(),
            user.unwrap_or_default(),
            suffix.as_str()
        );
    }
    let value = &whole.as_str()[prefix.len()..];
    if is_secret_value(prefix.as_str(), value) {
        format!("{}{MASK}", prefix.as_str())
    } else {
        whole.as_str().to_owned()
    }
}

/// Whether what follows a name is a secret rather than prose or a placeholder.
fn is_secret_value(prefix: &str, value: &str) -> bool {
    // `Token::new` and `secret == other` are code.
    let is_bare_value = value.len() >= SHORTEST_BARE && !value.starts_with([':', '=']);
    let is_secret = match prefix.trim_end().as_bytes().last() {
        Some(b'=') => is_bare_value,
        // "The password: eight letters" is a sentence; "password: hunter2" is not.
        Some(b':') => is_bare_value && value.bytes().any(|byte| byte.is_ascii_digit()),
        _ => true,
    };
    is_secret && !is_placeholder(value)
}

/// Whether a value stands for a secret without being one: nothing, `***`, `${VAR}`, `<token>`.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = value.trim();
    value.bytes().all(|byte| byte == b'*')
        || ["${", "$(", "{{", "<", MASK.trim_end_matches(']')]
            .iter()
            .any(|start| value.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(text: &str) -> String {
        Shapes::compiled().unwrap().replace(text).into_owned()
    }

    #[test]
    fn every_shape_is_found() {
        for token in [
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
            "glpat-abcdefghij0123456789",
            "xoxb-123456789012-abcdefghijkl",
            "xoxc-123456789012-abcdefghijkl",
            "xoxd-AbCd%2FEfGh%3D%3D",
            "AKIAIOSFODNN7EXAMPLE",
            "sk-abcdefghijklmnopqrstuvwx",
            "sk-ant-api03-abcdefghijklmnopqrstuvwx",
            "sk_live_abcdefghijklmnop",
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
            "ya29.a0AfH6SMBabcdefghijklmnop",
            "GOCSPX-abcdefghijklmnopqrstuvwxyz01",
            "npm_abcdefghijklmnopqrstuvwxyz012345",
            "pypi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTEyMzQtMTIzNA",
            "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
            "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
            "ATATT3xFfGF0abcdefghijklmnopqrstuvwxyz=1A2B3C4D",
            "hvs.CAESIabcdefghijklmnopqrstuvwx",
            "dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "lin_api_abcdefghijklmnopqrstuvwxyz0123456789ABCD",
            "ntn_12345678901abcdefghijklmnopqrstuvwxyz0123456789",
            "secret_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
            "sbp_0123456789abcdef0123456789abcdef01234567",
            "gsk_abcdefghijklmnopqrstuvwxyz",
            "AGE-SECRET-KEY-1QQPQ7FZXVYRXNVN0JJEEQAZ7VZ8ZF5EQT6D8KYK2V0M6FJ2ZL3SQ5UYQ3",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nabc\n-----END PGP PRIVATE KEY BLOCK-----",
            "-----BEGIN PRIVATE KEY-----\nthe rest was cut off",
        ] {
            assert_eq!(redact(&format!("a {token}")), "a [REDACTED]", "{token}");
        }
    }

    #[test]
    fn what_says_which_secret_it_was_stays() {
        for (text, expected) in [
            (
                "Authorization: Bearer abc.def-123456",
                "Authorization: Bearer [REDACTED]",
            ),
            ("BASIC dXNlcjpwYXNzd29yZA==", "BASIC [REDACTED]"),
            (
                "POST https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXX now",
                "POST https://hooks.slack.com/services/[REDACTED] now",
            ),
            (
                "at postgres://app:pa:ss@db/x?y",
                "at postgres://app:[REDACTED]@db/x?y",
            ),
            ("at https://:pass@h:1/a@b", "at https://:[REDACTED]@h:1/a@b"),
            ("mongodb+srv://u:p@h", "mongodb+srv://u:[REDACTED]@h"),
            (
                "Server=h;Uid=u;Pwd=hunter22;",
                "Server=h;Uid=u;Pwd=[REDACTED];",
            ),
            ("?password=hunter2&page=2", "?password=[REDACTED]&page=2"),
            ("DB_PASSWORD='it is long'", "DB_PASSWORD='[REDACTED]'"),
            ("password: hunter2", "password: [REDACTED]"),
            ("Your API key: abc12345.", "Your API key: [REDACTED]"),
            ("GITHUB_TOKEN=abcdef", "GITHUB_TOKEN=[REDACTED]"),
            (
                "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                "aws_secret_access_key = [REDACTED]",
            ),
            (
                "AccountName=a;AccountKey=abcdefghij+/0123456789==;EndpointSuffix=x",
                "AccountName=a;AccountKey=[REDACTED];EndpointSuffix=x",
            ),
            (
                r#"{"clientSecret" : "short", "Token":"x\ny z"}"#,
                r#"{"clientSecret" : "[REDACTED]", "Token":"[REDACTED]"}"#,
            ),
            (
                r#"{\"password\":\"it's\",\"user\":\"u\"}"#,
                r#"{\"password\":\"[REDACTED]\",\"user\":\"u\"}"#,
            ),
        ] {
            assert_eq!(redact(text), expected);
            assert_eq!(redact(expected), expected, "again");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "a risk-averse task-force",
            "disk-usage-report-for-the-month",
            "bearer of news",
            "ghp_short",
            "version 1.2.3 of eyJ",
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
            "see https://example.com:8080/path/to@place?a=b and ssh://git@host/x",
            "it takes a password: at least 8 letters, and a secret: be kind",
            "the key: value store, \"key\": \"ABC-123\", key=primary-key-17",
            "\"next_page_token\": \"CAoQAA0123456789\", max_tokens=4096, pageToken=CAoQAA01",
            "password=${DB_PASSWORD} token=<your-token> secret=***",
            "\"properties\": {\"password\": {\"type\": \"string\"}}, \"required\": [\"password\"]",
            "if password=None: secret=True",
            "if secret == \"x\" fn token(&self) -> Token { self.token }, tokens: 17, Token::new(abc12345)",
            "secretary: 12 of them; passwordless = enabled; keyboard: qwerty1",
            "pypi-mirror and npm_config_registry and SG.1 and hf_hub",
            "commit 3f786850e387550fdab836ed7e6dc881de23001b, ulid 01M7KRXRR59GY9GY8N4KZMK1ZF",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    /// Attempts that fail late must not be repeated for every match.
    #[test]
    fn many_matches_take_linear_time() {
        for piece in [
            "sk-aaaaaaaaaaaaaaaaaaaa.",
            "http://sk-aaaaaaaaaaaaaaaaaaaa.",
            "http://a:sk-aaaaaaaaaaaaaaaaaaaa,",
            "password \"sk-aaaaaaaaaaaaaaaaaaaa:",
            "password=\"",
            "token:'\\",
            "SG.aaaaaaaaaaaaaaaaaaaa ",
            "eyJaaaaaaaaaaaaa",
            "-----BEGIN A PRIVATE KEY",
        ] {
            let text = piece.repeat(512 * 1024 / piece.len());
            let began = std::time::Instant::now();
            redact(&text);
            assert!(
                began.elapsed().as_secs() < 20,
                "{piece}: {:?}",
                began.elapsed()
            );
        }
    }
}
