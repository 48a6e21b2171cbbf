//! The list of shapes: the beginnings of keys, and the text that follows.

/// The text that follows the beginning of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyRest {
    /// This many letters and digits at least.
    Plain(usize),
    /// Exactly this many capitals and digits.
    Capitals(usize),
    /// Exactly this many digits of base 16, in lower case.
    Hex(usize),
    /// This many letters, digits, `-` and `_` at least, and among them one run of letters and digits that no word
    /// has: 16 or more, of both kinds.
    Random(usize),
    /// This many letters, digits, `-` and `_` at least, one part of which is no word.
    Scrambled(usize),
    /// The id of an AWS key, which its secret may follow.
    AwsId,
    /// The secret of an AWS key, after its name.
    AwsSecret,
    /// Base 64 of at least this many characters, after its name.
    Base64(usize),
    /// `ID.SECRET`, of these sizes.
    Dotted(usize, usize),
    /// The path of an address, which alone permits writing there.
    SecretPath,
    /// The token of a bot, after its digits.
    Bot,
    /// The token of a bot of Discord, after the first letters of its id.
    BotParts,
    /// The token of a header.
    Bearer,
    /// `user:password` in base 64, of a header.
    Basic,
    /// The value of a variable, after the end of its name.
    Variable,
    /// `HOST login USER password SECRET`, whose last word is secret.
    Netrc,
    /// `user:password@`, whose password is secret.
    UserInfo,
    /// `HEADER.PAYLOAD.SIGNATURE`, whose first two parts are JSON in base 64.
    WebToken,
    /// Armoured text up to its end.
    Armour,
    /// The end of armoured text whose beginning was cut off, with the text before it.
    ArmourEnd,
}

/// Beginnings → rest.
pub(super) const SHAPES: &[(&[&str], KeyRest)] = &[
    // OpenAI, Anthropic, OpenRouter, DeepSeek; Groq, xAI, Perplexity, Replicate, Hugging Face.
    (&["sk-"], KeyRest::Random(20)),
    (&["gsk_"], KeyRest::Plain(40)),
    (&["xai-", "pplx-"], KeyRest::Random(40)),
    (&["r8_"], KeyRest::Plain(37)),
    (&["hf_"], KeyRest::Plain(30)),
    // Stripe, Twilio, SendGrid, Shopify.
    (&["sk_live_", "rk_live_", "sk_test_", "rk_test_"], KeyRest::Plain(16)),
    (&["whsec_"], KeyRest::Base64(32)),
    (&["SK"], KeyRest::Hex(32)),
    (&["SG."], KeyRest::Dotted(22, 43)),
    (&["shpat_", "shpca_", "shppa_", "shpss_"], KeyRest::Hex(32)),
    // GitHub, GitLab, registries.
    (&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], KeyRest::Plain(30)),
    (&["github_pat_"], KeyRest::Random(40)),
    (
        &["glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glimt-", "glft-", "glagent-", "gloas-", "glsoat-"],
        KeyRest::Scrambled(20),
    ),
    (&["npm_"], KeyRest::Plain(36)),
    (&["pypi-"], KeyRest::Random(60)),
    (&["dckr_pat_"], KeyRest::Random(20)),
    // Clouds.
    (&["AKIA", "ASIA"], KeyRest::AwsId),
    (
        &["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"],
        KeyRest::AwsSecret,
    ),
    (&["AIza"], KeyRest::Random(35)),
    (&["ya29."], KeyRest::Random(40)),
    (&["GOCSPX-"], KeyRest::Random(24)),
    (&["AccountKey=", "SharedAccessKey="], KeyRest::Base64(40)),
    (&["dop_v1_", "doo_v1_", "dor_v1_"], KeyRest::Hex(64)),
    (&["dapi"], KeyRest::Hex(32)),
    (&["sbp_"], KeyRest::Hex(40)),
    (&["sb_secret_"], KeyRest::Scrambled(20)),
    // Vaults, monitors, others.
    (&["hvs.", "hvb."], KeyRest::Random(24)),
    (&["dp.pt."], KeyRest::Plain(40)),
    (&["sntrys_"], KeyRest::Random(40)),
    (&["sntryu_"], KeyRest::Plain(40)),
    (&["glsa_"], KeyRest::Random(32)),
    (&["lin_api_", "ntn_"], KeyRest::Plain(40)),
    (&["figd_"], KeyRest::Random(40)),
    (&["AGE-SECRET-KEY-1"], KeyRest::Capitals(58)),
    // Mailgun; chats.
    (&["key-"], KeyRest::Hex(32)),
    (&["MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"], KeyRest::BotParts),
    (&["xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], KeyRest::Random(20)),
    (
        &["https://hooks.slack.com/", "https://discord.com/api/webhooks/", "https://discordapp.com/api/webhooks/"],
        KeyRest::SecretPath,
    ),
    (&[":AA"], KeyRest::Bot),
    // Any.
    (&["Bearer ", "bearer "], KeyRest::Bearer),
    (&["Basic ", "basic "], KeyRest::Basic),
    (
        &["TOKEN=", "API_KEY=", "SECRET_KEY=", "ACCESS_KEY=", "PRIVATE_KEY=", "SECRET=", "PASSWORD=", "PASSWD="],
        KeyRest::Variable,
    ),
    (&["machine "], KeyRest::Netrc),
    (&["://"], KeyRest::UserInfo),
    (&["eyJ"], KeyRest::WebToken),
    (&["-----BEGIN "], KeyRest::Armour),
    (&["-----END "], KeyRest::ArmourEnd),
];
