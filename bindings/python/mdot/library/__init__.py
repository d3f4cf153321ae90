"""mdot's C libraries as seen from Python: structs of the public headers, functions and errors.

    structs       structs of include/mdot, field by field; a test compares them with the C compiler's
    libraries.py  finds and loads libmdot, libmdotjob, libmdotc and libmdotstore, and declares the types of their functions
    errors.py     statuses as exceptions, the bits of predictions as warnings

The rest of the package uses these modules and defines no ctypes structs of its own.
"""
