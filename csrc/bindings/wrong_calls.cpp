// SPDX-License-Identifier: BSD-3-Clause
#include "wrong_calls.h"

#include <algorithm>
#include <initializer_list>

#include "bindings.h"
#include "scalars.h"

namespace fastpe::bindings {
namespace {

// Names that other libraries give to an argument, and the names here: the first one that the function knows is meant,
// unless it knows one of the last list, too.
struct OtherNames {
  std::initializer_list<const char*> theirs, ours;
  const char* remark = "";
  std::initializer_list<const char*> unless = {};
};

const OtherNames other_names[] = {
    {{"theta", "rope_theta", "rotary_base", "rope_base", "rotary_emb_base", "max_period", "temperature", "base",
      "max_wavelength", "max_timescale"},
     {"base", "theta", "max_period"}},
    {{"dim", "head_dim", "head_size", "rotary_dim", "rope_dim", "d_model", "d", "embed_dim", "embedding_dim",
      "hidden_size", "hidden_dim", "n_embd", "width", "dims", "num_channels"},
     {"rotary_dim", "d_model", "head_dim", "embedding_dim"}},
    {{"num_pos_feats", "num_position_features"}, {"d_model"}, ", which is twice this number for two axes"},
    {{"interpolation_scale"}, {"spacing"}, ", which is base_size / length / interpolation_scale for each axis"},
    {{"min_timescale"},
     {"freq_scale"},
     ", the same number, with base=max_timescale / min_timescale and convention='tensor2tensor'"},
    {{"inv_freq", "inv_freqs", "custom_freqs"}, {"freqs"}},
    {{"partial_rotary_factor", "rotary_percent", "rotary_percentage", "rotary_pct", "rope_pct", "rotary_emb_fraction"},
     {"rotary_dim"},
     ", which is this share of the head's columns"},
    {{"freq_shift"}, {"downscale_freq_shift"}},
    {{"is_neox_style", "is_neox", "neox_style", "use_neox_style", "rotate_half"},
     {"interleaved"},
     ", which is False for that style"},
    {{"interleave", "is_interleaved", "rotary_interleaved", "rope_interleave", "rope_interleaved", "traditional"},
     {"interleaved"}},
    {{"seq_len", "seqlen", "sequence_length", "num_positions", "length"}, {"positions", "max_len"}, "", {"x", "ids"}},
    {{"max_seq_len", "max_seq_length", "max_position_embeddings", "max_length", "max_positions", "n_ctx",
      "context_length", "max_position"},
     {"max_len"}},
    {{"attention_mask", "attn_mask", "padding_mask", "pad_mask", "pixel_mask", "src_mask", "valid"},
     {"mask"},
     ", which is True, or 1, where a row is valid"},
    {{"key_padding_mask", "src_key_padding_mask"}, {"mask"}, ", the contrary: it is True where a row is valid"},
    {{"padding_idx", "pad_token_id"},
     {"mask"},
     ", such as mask=ids != padding_idx, and offset=padding_idx - 1 with 'fairseq'"},
    {{"axis", "sequence_axis", "seq_dim", "time_axis", "dim"}, {"seq_axis"}},
    {{"batch_first", "time_major", "sequence_first", "tensor_format", "qkv_format", "unsqueeze_dim"},
     {"seq_axis"},
     ", which is 0 for [L, B, ..], -2 for [.., L, D], and -3 for [.., L, heads, D]"},
    {{"interleaved", "interleave"},
     {"convention"},
     ", such as 'vaswani' for sines and cosines in turn, or 'concat' for halves",
     {"shape", "coordinates"}},
    {{"position_ids", "cache_position", "pos_ids", "pos", "position", "timesteps", "timestep", "t"},
     {"positions", "timesteps"}},
    {{"start", "start_pos", "start_index", "input_pos", "past_len", "past_length", "past_key_values_length",
      "seqlen_offset", "seqlen_offsets", "first_position"},
     {"offset", "start"}},
    {{"shift", "delta", "offset", "k", "by"}, {"by", "k"}},
    {{"seq_lens", "seqlens", "seq_lengths", "length"}, {"lengths"}},
    {{"embed_scale", "emb_scale", "scale_factor", "scaling_factor"}, {"scale"}},
    {{"timescale"}, {"scale"}, ", a factor of the angles", {"x", "ids"}},
    {{"scale_embeddings", "scale_embedding"}, {"scale"}, ", such as scale=d_model ** 0.5"},
    {{"interpolate_factor"}, {"scaling"}, ", such as scaling={\"rope_type\": \"linear\", \"factor\": ..}"},
    {{"freq_scale", "rope_freq_scale", "scale"},
     {"scaling"},
     ", such as scaling={\"rope_type\": \"linear\", \"factor\": 1 / freq_scale}"},
    {{"rope_scaling", "rope_parameters", "scaling_factor", "factor", "rope_type"},
     {"scaling"},
     ", such as scaling={\"rope_type\": .., \"factor\": ..}"},
    {{"weight", "pos_embed", "position_embedding", "position_table", "table", "embedding"},
     {"table", "position_table"}},
    {{"cos_cache", "cos_cached", "cosine"}, {"cos"}},
    {{"sin_cache", "sin_cached", "sine"}, {"sin"}},
    {{"cls_token", "cls_tokens", "class_token", "extra_tokens", "add_cls_token"}, {"class_tokens"}},
    {{"grid_size", "grid", "size"}, {"shape"}},
    {{"coords", "points", "xyz"}, {"coordinates"}},
    {{"threads", "n_threads", "nthreads", "n_jobs", "workers"}, {"num_threads"}},
    {{"style", "pairing", "rope_style", "rope_layout"},
     {"interleaved"},
     ", which is True for neighbours, and False for columns that are half of the width apart (NeoX)"},
    {{"layout"},
     {"interleaved"},
     ", which is True for neighbours, and False for columns that are half of the width apart (NeoX)",
     {"seq_axis"}},
    {{"layout", "order", "style", "preset", "kind"}, {"convention", "form"}},
    {{"axes_dim", "axes_dims", "axes_dims_rope", "rope_axes_dim", "rope_dim_list"},
     {"sections"},
     ", which has half of each number"},
    {{"mrope_section", "mrope_sections"}, {"sections"}},
};

// Arguments of other functions than the one that was called, and what to do. Where a function has an argument `only`,
// a row is for it alone.
struct Elsewhere {
  std::initializer_list<const char*> names;
  const char* remedy;
  const char* only = nullptr;
};

const Elsewhere elsewhere[] = {
    {{"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor", "head_dim", "rotary_dim", "model_type",
      "mrope_section"},
     "; it belongs to the config: write it there",
     "config"},
    {{"base", "theta"}, "; it belongs to the config: write it there, as rope_theta", "config"},
    {{"scaling"}, "; it belongs to the config: write it there, as rope_scaling", "config"},
    {{"form"}, "; it belongs to tables(..): give it there", "config"},
    {{"freq_scale", "rope_freq_scale", "scale"},
     "; write \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 1 / freq_scale} into the config",
     "config"},
    {{"convention", "d_model", "base", "freq_scale", "freqs", "max_len"},
     "; it belongs to the encoding: give it to PositionalEncoding(..), and pass that as encoding",
     "encoding"},
    {{"rotary_dim", "interleaved", "base", "theta", "rope_theta", "freqs", "scaling", "max_len"},
     "; it belongs to the embedding: give it to RotaryEmbedding(..), and pass that as rope",
     "rope"},
    {{"mask", "lengths", "positions", "cu_seqlens", "table", "axes"},
     "; positions of a dask array are counted from offset alone: leave it out, or call fastpe.add(array.compute(), ..)",
     "array"},
    {{"axes_dim", "axes_dims", "axes_dims_rope", "rope_axes_dim", "rope_dim_list"},
     "; it belongs to a layout: give half of each number as sections= to the methods of fastpe.rotary_layouts[..]"},
    {{"mrope_section", "mrope_sections", "sections"},
     "; it belongs to a layout: give it as sections= to the methods of fastpe.rotary_layouts[..]"},
    {{"is_neox_style", "is_neox", "neox_style", "use_neox_style", "rotate_half", "interleave", "is_interleaved",
      "rotary_interleaved", "traditional", "style", "pairing"},
     "; which columns are pairs belongs to the embedding: give interleaved= to RotaryEmbedding(..), and call its "
     "methods",
     "inverse"},
    {{"layout"},
     "; the order of axes is seq_axis=, such as -3 for [.., L, heads, D]; which columns are pairs belongs to the "
     "embedding: give interleaved= to RotaryEmbedding(..), and call its methods",
     "inverse"},
    {{"layout"},
     "; the order of axes is seq_axis=, such as -3 for [.., L, heads, D]; which columns are pairs is interleaved=",
     "cos"},
    {{"cos", "sin", "freqs_cis", "position_embeddings"},
     "; the embedding makes its own: leave it out, or call fastpe.rotate_(q, k, cos=.., sin=.., interleaved=..)",
     "inverse"},
    {{"freqs_cis"}, "; pass cos and sin = np.stack([freqs_cis.real, freqs_cis.imag])", "cos"},
    {{"convention", "d_model", "freq_scale", "base", "freqs", "theta", "rope_theta", "table", "max_len", "rotary_dim",
      "scaling", "axes", "attention_factor", "inverse"},
     "; the tables are given as cos and sin: leave it out, or make a RotaryEmbedding(..) and call its rotate_",
     "cos"},
    {{"convention", "d_model", "freq_scale"},
     "; it belongs to the encoder: give it to PositionalEncoding(..), and call its methods"},
    {{"rotary_dim", "interleaved", "scaling", "axes", "conjugate", "attention_factor"},
     "; it belongs to the embedding: give it to RotaryEmbedding(..), and call its methods"},
    {{"base", "freqs", "theta", "rope_theta"},
     "; frequencies belong to PositionalEncoding(..) or RotaryEmbedding(..): give it there, and call its methods"},
    {{"max_len", "max_seq_len", "max_position_embeddings"},
     "; rows are kept by PositionalEncoding(..) and RotaryEmbedding(..): give it there, and call its methods"},
    {{"config", "layer_type", "model_type"},
     "; a model's config.json is read by RotaryEmbedding.from_config(config, ..): call that"},
    {{"use_xpos", "xpos_scale_base", "scale_base"},
     "; fastpe rotates, and does not scale by position as xPos does: leave it out"},
    {{"flip_sin_to_cos", "freq_shift", "downscale_freq_shift"},
     "; it belongs to fastpe.timestep_embedding(timesteps, embedding_dim, ..): call that"},
    {{"batch_first", "time_major", "sequence_first", "sequence_axis", "seq_axis"},
     "; where the sequence is belongs to each call that takes an array: give seq_axis= there"},
    {{"scale_embeddings", "scale_embedding", "embed_scale", "emb_scale"},
     "; embeddings are scaled where the encoding is added: give scale= there"},
    {{"seq_len", "seqlen", "sequence_length"}, "; the length is that of the array, along seq_axis: leave it out"},
    {{"table", "pos_embed"}, "; a learned table is added by add_, add and embed: call one of them"},
    {{"cls_token", "class_tokens"}, "; leave it out, and pass the array without the rows of class tokens"},
    {{"cos_first", "cosine_first"},
     "; give convention=dataclasses.replace(preset, cosine_first=True) with a preset, such as "
     "fastpe.conventions['mlx']",
     "convention"},
    {{"normalize"},
     "; the conventions 'detr' and 'deformable_detr' normalize; without that, give "
     "convention=dataclasses.replace(fastpe.grid_conventions['detr'], normalize=False) and freq_scale=1",
     "class_tokens"},
    {{"dtype"}, "; the dtype is that of the array: pass np.asarray(x, dtype)", "x"},
    {{"dtype"}, "; the dtype is that of the table: pass np.asarray(table, dtype)", "ids"},
    {{"dtype"}, "; the dtype is that of the array: pass array.astype(dtype)", "array"},
    {{"dtype"}, "; the dtype is an argument of each call: give it there", "max_len"},
    {{"dtype"}, "; leave it out"},
    {{"num_heads", "n_heads", "nhead", "heads"},
     "; heads are an axis: pass x.reshape(B, L, num_heads, -1) with seq_axis=-3",
     "seq_axis"},
    {{"padding_idx", "pad_token_id"}, "; padding belongs to each call: give mask= there"},
    {{"alpha"}, "; it is a factor of add_, add and embed: give it there", "convention"},
    {{"scale", "pe_scale", "pos_scale", "res_scale", "timescale"},
     "; scale= of add_, add and embed is a factor of x, freq_scale= of the frequencies, alpha= of a Convention of the "
     "encoding"},
    {{"device"}, "; fastpe computes on the CPU: leave it out"},
    {{"dropout", "dropout_p"}, "; fastpe has no dropout: leave it out, and apply it to the result"},
    {{"inplace", "in_place", "copy"},
     "; functions whose name ends in _ work in place, and others do not: leave it out"},
};

std::string listed(const py::list& names) { return py::str(", ").attr("join")(names).cast<std::string>(); }

bool has(const std::initializer_list<const char*>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const char* each) { return name == each; });
}

bool has_any(const py::list& known, const std::initializer_list<const char*>& names) {
  return std::any_of(names.begin(), names.end(), [&](const char* each) { return known.contains(each); });
}

struct Meant {
  const char* name = nullptr;
  const char* remark = "";
};

Meant meant_by(const std::string& name, const py::list& known) {
  for (const OtherNames& row : other_names) {
    if (!has(row.theirs, name) || has_any(known, row.unless)) continue;
    for (const char* ours : row.ours) {
      if (known.contains(ours)) return {ours, row.remark};
    }
  }
  return {};
}

std::string hint(const std::string& function, const std::string& name, PyObject* keyword, const py::list& known) {
  if (const Meant meant = meant_by(name, known); meant.name != nullptr) {
    return "; did you mean '" + std::string(meant.name) + "'" + meant.remark + "?";
  }
  if (name == "out") {
    return function.back() == '_'
               ? "; " + function + "() writes into x itself: leave it out, or pass x.copy() if x is to stay as it is"
               : "; the result is a new array: leave it out";
  }
  for (const Elsewhere& row : elsewhere) {
    if (has(row.names, name) && (row.only == nullptr || known.contains(row.only))) return row.remedy;
  }
  if (const std::string near = did_you_mean(keyword, known, 0.7); !near.empty()) return near;
  return "; expected one of " + listed(known);
}

std::string unexpected_argument(const std::string& function, PyObject* keyword, const py::list& known) {
  return function + "() got an unexpected keyword argument " + repr_of(keyword) +
         hint(function, utf8_of(py::reinterpret_borrow<py::object>(keyword)), keyword, known);
}

std::string too_many_arguments(const std::string& function, const py::list& known, Py_ssize_t allowed,
                               Py_ssize_t given) {
  const auto part = [&](Py_ssize_t first, Py_ssize_t last) {
    return listed(py::reinterpret_steal<py::list>(PyList_GetSlice(known.ptr(), first, last)));
  };
  const Py_ssize_t count = static_cast<Py_ssize_t>(known.size());
  return function + "() takes " + std::to_string(allowed) + " positional argument(s), found " + std::to_string(given) +
         (count == allowed ? "; leave the others out"
                           : "; pass all" + (allowed > 0 ? " but " + part(0, allowed) : "") +
                                 " by keyword: " + part(allowed, count));
}

std::string missing_argument(const std::string& function, const std::string& argument) {
  std::string message = function + "() is missing its argument '" + argument + "'";
  if (argument == "interleaved") {
    message +=
        ", which columns are pairs; give interleaved=True for neighbours (GPT-J, Meta's Llama, GGUF files), or "
        "interleaved=False for columns that are half of the width apart (GPT-NeoX, Hugging Face's Llama), or call "
        "RotaryEmbedding.from_config(config), which knows it for a model";
  } else if (argument == "cos" || argument == "sin") {
    message +=
        "; give the cosines and sines, which are table.real and table.imag of a complex table, or make a "
        "RotaryEmbedding(..) and call its rotate_";
  } else if (argument == "convention") {
    message += "; print(fastpe.grid_conventions) lists its values";
  }
  return message;
}

py::list listed(const MethodNames& names) {
  py::list result;
  for (std::size_t i = 0; i < names.count; ++i) result.append(py::handle(names.arguments[i]));
  return result;
}

}  // namespace

std::string did_you_mean(PyObject* name, const py::list& known, double cutoff) {
  const auto text = py::reinterpret_borrow<py::str>(name);
  const py::list close = py::module_::import("difflib").attr("get_close_matches")(text, known, 1, cutoff);
  return close.empty() ? std::string() : "; did you mean '" + close[0].cast<std::string>() + "'?";
}

void refuse_unexpected(const MethodNames& names, PyObject* keyword) {
  throw py::type_error(unexpected_argument(names.method, keyword, listed(names)));
}

void refuse_too_many(const MethodNames& names, Py_ssize_t given, const char* besides) {
  const auto required = static_cast<Py_ssize_t>(names.required);
  throw py::type_error(too_many_arguments(names.method, listed(names), required, given) + besides);
}

void refuse_second(const MethodNames& names, const char* argument) {
  throw py::type_error(std::string(names.method) + "() got two values for argument '" + argument + "'");
}

void refuse_missing(const MethodNames& names, const char* argument) {
  throw py::type_error(missing_argument(names.method, argument));
}

std::string parts_of_complex(const std::string& name, py::ssize_t bytes) {
  const char* text = "; pass {0}.view(np.{1}), which has real and imaginary parts as neighbours, or np.real({0})";
  if (name == "cos" || name == "sin") {
    text = "; pass cos and sin = np.stack([{0}.real, {0}.imag])";
  } else if (name.rfind("others", 0) == 0) {
    text = "; leave complex cosines and sines out, or pass {0}.view(np.{1}) of queries or keys";
  }
  return py::str(text).format(name, bytes == 8 ? "float32" : "float64");
}

void bind_wrong_calls(py::module_& module) {
  module.def(
      "other_name",
      [](const std::string& name, const py::list& known) {
        const Meant meant = meant_by(name, known);
        // A remark says how to change the value: the name alone does not serve.
        return std::string(meant.name == nullptr || *meant.remark != 0 ? "" : meant.name);
      },
      py::arg("keyword"), py::arg("known"));
  module.def(
      "unexpected_argument",
      [](const std::string& function, const py::str& keyword, const py::list& known) {
        return unexpected_argument(function, keyword.ptr(), known);
      },
      py::arg("function"), py::arg("keyword"), py::arg("known"));
  module.def("too_many_arguments", &too_many_arguments, py::arg("function"), py::arg("known"), py::arg("allowed"),
             py::arg("given"));
  module.def("missing_argument", &missing_argument, py::arg("function"), py::arg("argument"));
}

}  // namespace fastpe::bindings
