"""mdot's C libraries as seen from Python: the public headers' structs, functions and errors.

  structs       structs in include/mdot, field by field; a test compares them with the C compiler's
  libraries.py  finds and loads libmdot, libmdotjob and libmdotc, and declares function types
  errors.py     statuses as exceptions, the bits of predictions as warnings

The rest of the package uses these modules and defines no ctypes structs of its own.
"""
