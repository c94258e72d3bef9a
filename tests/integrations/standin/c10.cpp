#include "c10.h"

#include <utility>

namespace c10
{

Error::Error(SourceLocation where, std::string text) : text_(std::move(text))
{
    text_ += " (";
    text_ += where.function;
    text_ += ")";
}

const char *Error::what() const noexcept
{
    return text_.c_str();
}

} // namespace c10
