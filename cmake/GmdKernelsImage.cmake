# kernels_image.c from TEXT, the kernels as text for the driver: cmake -DTEXT=... -DOUT=... -P this file.
file(READ ${TEXT} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "/* Made of kernels.ptx. */\n#include \"kernels_image.h\"\n\n"
  "const unsigned char kernels_image[] = {${bytes} 0};\n")
