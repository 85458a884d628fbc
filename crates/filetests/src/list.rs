//! The text of `run` lines: names, signs, lists of numbers.

/// A list of numbers, repetitions written out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers(pub(crate) Vec<f32>);

/// Reads a line from left to right.
pub(crate) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { rest: text.trim_start() }
    }

    /// Takes `n` bytes and the blanks behind them.
    fn take(&mut self, n: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(n);
        self.rest = rest.trim_start();
        taken
    }

    fn wants(&self, what: &str) -> String {
        format!("{what} is expected at `{}`", self.rest.chars().take(20).collect::<String>())
    }

    pub(crate) fn word(&mut self) -> Result<&'a str, String> {
        let n = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        if n == 0 { Err(self.wants("a name")) } else { Ok(self.take(n)) }
    }

    /// `=`, `==` or `~`.
    pub(crate) fn sign(&mut self) -> Result<&'a str, String> {
        let sign = ["==", "=", "~"].into_iter().find(|s| self.rest.starts_with(s));
        sign.map(|s| self.take(s.len())).ok_or_else(|| self.wants("`=`, `==` or `~`"))
    }

    /// `[1, 2.5, inf]`, maybe followed by `* n`.
    pub(crate) fn numbers(&mut self) -> Result<Numbers, String> {
        let inside =
            self.rest.strip_prefix('[').and_then(|r| Some(r.split_once(']')?.0)).ok_or_else(|| self.wants("a list in brackets"))?;
        let one = |word: &str| word.trim().parse::<f32>().map_err(|_| format!("`{}` is no number", word.trim()));
        let mut values = inside.split(',').map(one).collect::<Result<Vec<f32>, String>>()?;
        self.take(inside.len() + 2);
        if self.rest.starts_with('*') {
            self.take(1);
            let times: usize = self.word()?.parse().map_err(|_| "`*` is followed by a count".to_string())?;
            values = values.repeat(times.min(1 << 20));
        }
        Ok(Numbers(values))
    }

    /// `tol=0.01`.
    pub(crate) fn tolerance(&mut self) -> Result<f32, String> {
        let rest = self.rest.strip_prefix("tol=").ok_or_else(|| self.wants("`tol=` and a number"))?;
        let n = rest.find([',', ' ']).unwrap_or(rest.len());
        let value = rest[..n].parse().map_err(|_| self.wants("`tol=` and a number"))?;
        self.take(n + 4);
        Ok(value)
    }

    pub(crate) fn comma(&mut self) -> bool {
        let there = self.rest.starts_with(',');
        if there {
            self.take(1);
        }
        there
    }

    pub(crate) fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wants("the end of the line")) }
    }
}
