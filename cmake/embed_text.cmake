# Writes C constants from text files: cmake -D OUTPUT=x.c -D HEADER=x.h -D PREFIX=cu_ -D TEXTS=a.cuh,b.cuh -P embed_text.cmake
# The text of a.cuh becomes the constant cu_a, which the header declares.
set(code "#include \"${HEADER}\"\n")
string(REPLACE "," ";" TEXTS "${TEXTS}")
foreach(path IN LISTS TEXTS)
  get_filename_component(name ${path} NAME_WE)
  file(READ ${path} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  string(APPEND code "\nconst char ${PREFIX}${name}[] =\n    \"${text}\";\n")
endforeach()
file(WRITE ${OUTPUT} "${code}")
