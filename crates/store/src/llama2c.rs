//! llama2.c's first checkpoint format ("v0"): seven i32, then fp32 arrays, all layers of a kind together.
//!
//! | array | shape |
//! |---|---|
//! | token embedding | `[vocab, dim]` |
//! | attention norms | `[layers, dim]` |
//! | wq, wk, wv, wo | `[layers, dim, dim]`, `[layers, kv_dim, dim]` twice, `[layers, dim, dim]` |
//! | feed-forward norms | `[layers, dim]` |
//! | w1, w2, w3 | `[layers, hidden, dim]`, `[layers, dim, hidden]`, `[layers, hidden, dim]` |
//! | final norm | `[dim]` |
//! | rotary cosines, sines | `[seq_len, head_dim/2]` twice; not used by any reader |
//! | classifier | `[vocab, dim]`; only where the header's vocabulary is negative |
//!
//! The file rotates interleaved pairs. What [`read`] returns is in halves, as in every other file of this crate.

use crate::error::{Context, Result, StoreError};
use crate::files::{length, parent};
use crate::fs::{FileSystem, Source};
use crate::rope::Rows;
use model::{Config, Role, Rope};
use std::io::{Read, Write};
use std::path::Path;

/// Bytes of the header.
const HEADER: usize = 28;
/// llama2.c fixes these in its source.
const THETA: f32 = 10_000.0;
const EPS: f32 = 1e-5;

/// The arrays in the file's order; the rotary tables follow [`Role::FinalNorm`].
const ORDER: [Role; 12] = [
    Role::Embedding,
    Role::AttnNorm,
    Role::Wq,
    Role::Wk,
    Role::Wv,
    Role::Wo,
    Role::FfnNorm,
    Role::W1,
    Role::W2,
    Role::W3,
    Role::FinalNorm,
    Role::Classifier,
];

/// Exact length of the file of a configuration, in u128 so that no header can overflow it.
fn file_len(c: &Config) -> u128 {
    let [d, h, l, q, kv, v, s, half] =
        [c.dim, c.hidden_dim, c.n_layers, c.q_dim(), c.kv_dim(), c.vocab_size, c.max_seq_len, c.head_dim / 2].map(|n| n as u128);
    let layer = 2 * d + 2 * d * q + 2 * d * kv + 3 * d * h;
    let heads = if c.tied { 1 } else { 2 };
    HEADER as u128 + 4 * (heads * v * d + l * layer + d + 2 * s * half)
}

/// The configuration of a header, checked against the file's length.
fn config(path: &Path, header: &[u8; HEADER], len: u64) -> Result<Config> {
    let mut fields = [0i32; 7];
    for (field, bytes) in fields.iter_mut().zip(header.as_chunks().0) {
        *field = i32::from_le_bytes(*bytes);
    }
    let [dim, hidden, layers, heads, kv, vocab, seq] = fields;
    let names = ["dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "seq_len"];
    for (name, value) in names.into_iter().zip([dim, hidden, layers, heads, kv, seq]) {
        if value <= 0 {
            return Err(StoreError::bad(path, format!("has {name} = {value} in its header: it is not a llama2.c v0 checkpoint")));
        }
    }
    if dim % heads != 0 {
        return Err(StoreError::bad(path, format!("has dim = {dim} in its header, which {heads} heads do not divide")));
    }
    let config = Config {
        dim: dim as usize,
        hidden_dim: hidden as usize,
        n_layers: layers as usize,
        n_heads: heads as usize,
        n_kv_heads: kv as usize,
        head_dim: (dim / heads) as usize,
        vocab_size: vocab.unsigned_abs() as usize,
        max_seq_len: seq as usize,
        rope_theta: THETA,
        rope: Rope::Half,
        norm_eps: EPS,
        tied: vocab > 0,
    };
    config.check().map_err(|source| StoreError::Config { path: path.to_path_buf(), source })?;
    let need = file_len(&config);
    if need != u128::from(len) {
        return Err(StoreError::bad(path, format!("is {len} bytes long, its header asks for {need}: it is truncated or another format")));
    }
    Ok(config)
}

/// Reads a checkpoint; parameters in the order of [`Config::parameters`].
///
/// # Errors
/// A header that is no model, or a length that is not the header's, with both.
pub fn read(fs: &dyn FileSystem, path: &Path) -> std::result::Result<(Config, Vec<Vec<f32>>), StoreError> {
    let mut file = fs.open(path).doing("open", path)?;
    let len = length(&mut *file).doing("measure", path)?;
    let mut header = [0; HEADER];
    if len < HEADER as u64 {
        return Err(StoreError::bad(path, format!("is {len} bytes long, shorter than a llama2.c header of {HEADER}")));
    }
    file.read_exact(&mut header).doing("read", path)?;
    let config = config(path, &header, len)?;
    let specs = config.parameters();
    let mut params: Vec<Vec<f32>> = vec![Vec::new(); specs.len()];
    for role in ORDER {
        if role == Role::Classifier {
            // The rotary tables, which follow from the position and theta.
            read_floats(&mut *file, config.max_seq_len * (config.head_dim / 2) * 2).doing("read", path)?;
        }
        for (spec, values) in specs.iter().zip(&mut params).filter(|(s, _)| s.role == role) {
            let data = read_floats(&mut *file, spec.len()).doing("read", path)?;
            *values = match role {
                Role::Wq | Role::Wk => Rows::HalvesOfPairs { head_dim: config.head_dim }.to_file(&data, config.dim),
                _ => data,
            };
        }
    }
    Ok((config, params))
}

fn read_floats(file: &mut dyn Source, count: usize) -> std::io::Result<Vec<f32>> {
    let mut values = Vec::with_capacity(count);
    let mut chunk = vec![0; (count * 4).min(1 << 18)];
    while values.len() < count {
        let part = &mut chunk[..((count - values.len()) * 4).min(1 << 18)];
        file.read_exact(part)?;
        values.extend(part.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)));
    }
    Ok(values)
}

/// Writes a model as a llama2.c checkpoint. Only what the format can say: `n_heads * head_dim = dim`, theta 10,000.
///
/// # Errors
/// A model the format cannot hold, by the field; parameters that do not fit; the system's.
pub fn write(fs: &dyn FileSystem, path: &Path, config: &Config, params: &[&[f32]]) -> std::result::Result<(), StoreError> {
    config.check().map_err(|e| StoreError::Input(e.to_string()))?;
    for (field, fits) in
        [("head_dim", config.q_dim() == config.dim), ("rope_theta", config.rope_theta == THETA), ("norm_eps", config.norm_eps == EPS)]
    {
        if !fits {
            return Err(StoreError::Input(format!("llama2.c's format has no field for this model's `{field}`")));
        }
    }
    let specs = config.parameters();
    if specs.len() != params.len() || specs.iter().zip(params).any(|(s, p)| s.len() != p.len()) {
        return Err(StoreError::Input("the parameters do not fit the configuration".into()));
    }
    crate::create_dirs(fs, &parent(path))?;
    let mut out = crate::files::HashWriter::create(fs, path)?;
    encode(&mut out, config, params).doing("write", path)?;
    out.finish(path).map(|_| ())
}

fn encode(out: &mut impl Write, c: &Config, params: &[&[f32]]) -> std::io::Result<()> {
    let vocab = if c.tied { c.vocab_size as i32 } else { -(c.vocab_size as i32) };
    let sizes = [c.dim, c.hidden_dim, c.n_layers, c.n_heads, c.n_kv_heads].map(|n| n as i32);
    for field in sizes.into_iter().chain([vocab, c.max_seq_len as i32]) {
        out.write_all(&field.to_le_bytes())?;
    }
    let specs = c.parameters();
    for role in ORDER {
        if role == Role::Classifier {
            let angle = |p: usize, i: usize| p as f64 / f64::from(THETA).powf(2.0 * i as f64 / c.head_dim as f64);
            for part in [f64::cos, f64::sin] {
                for at in 0..c.max_seq_len * (c.head_dim / 2) {
                    let value = part(angle(at / (c.head_dim / 2), at % (c.head_dim / 2)));
                    out.write_all(&(value as f32).to_le_bytes())?;
                }
            }
        }
        for (_, data) in specs.iter().zip(params).filter(|(s, _)| s.role == role) {
            let paired;
            let data = if matches!(role, Role::Wq | Role::Wk) && c.rope == Rope::Half {
                paired = Rows::HalvesOfPairs { head_dim: c.head_dim }.to_memory(data.to_vec(), c.dim);
                &paired
            } else {
                *data
            };
            for value in data {
                out.write_all(&value.to_le_bytes())?;
            }
        }
    }
    Ok(())
}
