// Runs one signature of a SavedModel that tffc exported, such as `work` at a client, without Python.
//
//     client MODEL SIGNATURE IN OUT
//
// Each input NAME of the signature is read from IN/NAME.npy and each output written to OUT/NAME.npy,
// arrays of numbers in C order. OUT is made if it does not exist. Exit codes: 0 done, 1 refused,
// 2 wrong usage.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace tf = tensorflow;

// What NumPy calls an element type, by what TensorFlow does.
const std::pair<tf::DataType, std::string> kTypes[] = {
    {tf::DT_FLOAT, "<f4"}, {tf::DT_DOUBLE, "<f8"}, {tf::DT_HALF, "<f2"},  {tf::DT_BOOL, "|b1"},
    {tf::DT_INT8, "|i1"},  {tf::DT_INT16, "<i2"},  {tf::DT_INT32, "<i4"}, {tf::DT_INT64, "<i8"},
    {tf::DT_UINT8, "|u1"}, {tf::DT_UINT16, "<u2"}, {tf::DT_UINT32, "<u4"}, {tf::DT_UINT64, "<u8"}};

std::runtime_error Refused(const std::string& what) { return std::runtime_error(what); }

void Check(const absl::Status& status) {
  if (!status.ok()) throw Refused(std::string(status.message()));
}

// Returns what stands in a header of .npy between two texts.
std::string Between(const std::string& header, const std::string& before, const std::string& after) {
  const size_t begin = header.find(before);
  const size_t end = begin == std::string::npos ? begin : header.find(after, begin + before.size());
  if (end == std::string::npos) throw Refused("a header of .npy lacks " + before);
  return header.substr(begin + before.size(), end - begin - before.size());
}

tf::Tensor ReadNpy(const std::string& path, tf::DataType wanted) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Refused("cannot read " + path);
  char start[10] = {};
  file.read(start, sizeof start);
  if (!file || std::string(start, 8) != std::string("\x93NUMPY\x01\x00", 8))
    throw Refused(path + " is not .npy of version 1.0");
  std::string header(uint8_t(start[8]) + 256 * uint8_t(start[9]), ' ');
  file.read(header.data(), header.size());
  const std::string type = Between(header, "'descr': '", "'");
  for (const auto& [dtype, name] : kTypes)
    if (dtype == wanted && name != type)
      throw Refused(path + " holds " + type + ", the signature takes " + name);
  if (Between(header, "'fortran_order': ", ",") != "False") throw Refused(path + " is not in C order");
  tf::TensorShape shape;
  std::istringstream sizes(Between(header, "'shape': (", ")"));
  for (std::string size; std::getline(sizes, size, ',');)
    if (size.find_first_of("0123456789") != std::string::npos)
      Check(shape.AddDimWithStatus(std::stoll(size)));
  tf::Tensor tensor(wanted, shape);
  file.read(static_cast<char*>(tensor.data()), tensor.TotalBytes());
  if (size_t(file.gcount()) != tensor.TotalBytes()) throw Refused(path + " is cut short");
  return tensor;
}

void WriteNpy(const std::string& path, const tf::Tensor& tensor) {
  std::string type;
  for (const auto& [dtype, name] : kTypes)
    if (dtype == tensor.dtype()) type = name;
  if (type.empty()) throw Refused(path + " would not hold numbers");
  std::string shape;
  for (const int64_t size : tensor.shape().dim_sizes()) shape += std::to_string(size) + ",";
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + ")}";
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << std::string("\x93NUMPY\x01\x00", 8) << char(header.size() & 255) << char(header.size() >> 8);
  file << header;
  file.write(static_cast<const char*>(tensor.data()), tensor.TotalBytes());
  if (!file.flush()) throw Refused("cannot write " + path);
}

void Run(const std::string& folder, const std::string& name, const std::string& in,
         const std::string& out) {
  tf::SavedModelBundleLite model;
  Check(tf::LoadSavedModel(tf::SessionOptions(), tf::RunOptions(), folder, {"serve"}, &model));
  const auto found = model.GetSignatures().find(name);
  if (found == model.GetSignatures().end()) throw Refused(folder + " has no signature " + name);
  std::vector<std::pair<std::string, tf::Tensor>> given;
  for (const auto& [key, info] : found->second.inputs())
    given.emplace_back(info.name(), ReadNpy(in + "/" + key + ".npy", info.dtype()));
  std::vector<std::string> keys, names;
  for (const auto& [key, info] : found->second.outputs()) {
    keys.push_back(key);
    names.push_back(info.name());
  }
  std::vector<tf::Tensor> results;
  Check(model.GetSession()->Run(given, names, {}, &results));
  std::filesystem::create_directories(out);
  for (size_t i = 0; i < keys.size(); ++i) WriteNpy(out + "/" + keys[i] + ".npy", results[i]);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: client MODEL SIGNATURE IN OUT\n";
    return 2;
  }
  try {
    Run(argv[1], argv[2], argv[3], argv[4]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
