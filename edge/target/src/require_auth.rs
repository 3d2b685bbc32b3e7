/// libpq's `require_auth`: by which methods a client logs in.
#[derive(Debug, Clone, Default)]
pub struct RequireAuth {
    methods: Vec<String>,
    /// The methods are the forbidden ones.
    forbidden: bool,
}

impl RequireAuth {
    /// Reads names of methods with commas between, all of them with a `!` in front where they are the forbidden ones.
    /// Nothing allows every method.
    pub fn parse(text: &str) -> Self {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let methods = words.clone().map(|word| word.trim_start_matches('!').to_owned()).collect();
        Self { methods, forbidden: words.clone().any(|word| word.starts_with('!')) }
    }

    /// Whether a client may log in by the method of this name; `none` is to be let in without being asked.
    pub fn allows(&self, method: &str) -> bool {
        let is_named = self.methods.iter().any(|named| named == method);
        self.methods.is_empty() || is_named != self.forbidden
    }
}
