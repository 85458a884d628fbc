//! The order of a head's channels in query and key projections: files hold halves, a model may hold interleaved pairs.

use model::{Config, ParamSpec, Role, Rope};

/// How the rows of a matrix in memory lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// As they are.
    Same,
    /// In memory each head holds its rotary pairs side by side (channels `2i`, `2i + 1`); in the file, as halves
    /// (channels `i`, `i + head_dim/2`).
    HalvesOfPairs {
        /// Rows of one head; even.
        head_dim: usize,
    },
}

impl Rows {
    /// What the rows of a parameter need, by the model's convention.
    pub(crate) fn of(config: &Config, spec: &ParamSpec) -> Rows {
        match (config.rope, spec.role) {
            (Rope::Interleaved, Role::Wq | Role::Wk) => Rows::HalvesOfPairs { head_dim: config.head_dim },
            _ => Rows::Same,
        }
    }

    /// The row in memory that lies at `row` of the file.
    pub(crate) fn in_memory(self, row: usize) -> usize {
        match self {
            Rows::Same => row,
            Rows::HalvesOfPairs { head_dim } => {
                let (head, j) = (row - row % head_dim, row % head_dim);
                let half = head_dim / 2;
                head + if j < half { 2 * j } else { 2 * (j - half) + 1 }
            }
        }
    }

    /// Brings a matrix of `width` columns from the file's order to memory's.
    pub(crate) fn to_memory(self, data: Vec<f32>, width: usize) -> Vec<f32> {
        if self == Rows::Same || width == 0 {
            return data;
        }
        let mut out = vec![0.0; data.len()];
        for (row, values) in data.chunks_exact(width).enumerate() {
            let to = self.in_memory(row) * width;
            out[to..to + width].copy_from_slice(values);
        }
        out
    }

    /// Brings a matrix of `width` columns from memory's order to the file's.
    pub(crate) fn to_file(self, data: &[f32], width: usize) -> Vec<f32> {
        if self == Rows::Same || width == 0 {
            return data.to_vec();
        }
        let mut out = Vec::with_capacity(data.len());
        for row in 0..data.len() / width {
            let from = self.in_memory(row) * width;
            out.extend_from_slice(&data[from..from + width]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_one_head_of_six() {
        let rows = Rows::HalvesOfPairs { head_dim: 6 };
        let order: Vec<usize> = (0..12).map(|r| rows.in_memory(r)).collect();
        assert_eq!(order, [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
    }

    #[test]
    fn there_and_back_is_the_same() {
        for head_dim in [2, 4, 8, 48] {
            let (rows, width) = (Rows::HalvesOfPairs { head_dim }, 3);
            let data: Vec<f32> = (0..3 * head_dim * width).map(|i| i as f32).collect();
            let file = rows.to_file(&data, width);
            assert_eq!(file == data, head_dim == 2);
            assert_eq!(rows.to_memory(file, width), data);
        }
    }
}
