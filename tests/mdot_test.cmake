include(${PROJECT_SOURCE_DIR}/cmake/MdotTest.cmake)

# Tests that take longer than about three seconds of one core.
set(mdot_full_tests
    aarch64_artefact
    aarch64_build
    abi_install
    abi_packages
    dialect
    formats
    gpu_dry_run
    guide_a_schedulers_loop
    guide_calibrate_to_your_cluster
    guide_compile_a_predictor
    guide_plan_llm_training
    guide_rules
    guide_your_own_predictor
    onnx_debian_node
    onnx_shared_node
    onnx_shared_predictor
    order
    python_artefact
    python_commands
    python_compiler
    python_explanation
    python_job
    python_layouts
    python_library
    python_option_parts
    python_predict
    python_questions
    python_readme
    python_record_trace
    python_recording
    readme
    reproducible
    test_batch_items
    test_bf16
    test_cli
    test_cli_control_bytes
    test_cli_predict
    test_cli_predict_usage
    test_config
    test_cpu_attention
    test_cpu_attention_scores
    test_cpu_expr
    test_cpu_linear
    test_cpu_linear_winograd
    test_cpu_nest
    test_cpu_recurrence
    test_cpu_sequential
    test_cpu_sliding_windows
    test_cuda_deletions
    test_cuda_images
    test_cuda_kernels
    test_cuda_kinds
    test_cuda_literals
    test_cuda_models
    test_cuda_mutations
    test_cuda_recurrence
    test_cuda_runtime
    test_cuda_schedules
    test_cuda_sequential
    test_encode_evaluate
    test_environments
    test_examples
    test_explain
    test_faults
    test_growth
    test_hardware_bound
    test_library_faults
    test_limit_rows
    test_loop
    test_lower_quantised
    test_monotony
    test_nvrtc
    test_onnx_reference
    test_random_models
    test_runtime_cuda_limits
    test_search
    test_shared_code
    test_shipped_predictor
    test_types
    test_verify_mutants)

# NAME SHARDS: programs that would take longer than two minutes, under the sanitizers on a busy machine with two cores, and
# programs of the two lists below.
set(mdot_shards
    "test_batch_items 2"
    "test_cpu_attention 3"
    "test_cpu_attention_scores 9"
    "test_cpu_expr 2"
    "test_cpu_linear 3"
    "test_cpu_linear_winograd 2"
    "test_cpu_nest 2"
    "test_cpu_product 2"
    "test_cpu_recurrence 2"
    "test_cpu_rounded_lengths 2"
    "test_cpu_sequential 2"
    "test_cpu_sliding_windows 2"
    "test_cuda_images 3"
    "test_cuda_kinds 4"
    "test_cuda_literals 3"
    "test_cuda_models 6"
    "test_cuda_recurrence 4"
    "test_cuda_runtime 2"
    "test_cuda_schedules 2"
    "test_cuda_sequential 4"
    "test_faults_exhaustive 9"
    "test_library_faults_exhaustive 6"
    "test_types 2"
    "onnx_debian_node 4"
    "onnx_shared_node 4")

# Builds with and without sanitizers share the work on kernels, because most of the time goes to generated code, which is the
# same in both. Every second shard runs under the sanitizers, the others without.
set(mdot_shared_by_two
    test_cpu_attention_scores
    test_cpu_expr
    test_cpu_linear_winograd
    test_cpu_nest
    test_cpu_product
    test_cpu_recurrence
    test_cpu_rounded_lengths
    test_cpu_sequential
    test_cpu_sliding_windows
    test_cuda_kinds
    test_cuda_recurrence
    test_cuda_sequential
    test_types)
# Here the cases are many shapes of the same kernels. Of three shards, the first runs under the sanitizers, the second without,
# and the third is `exhaustive`.
set(mdot_shared_by_three
    test_cpu_attention
    test_cpu_linear
    test_cuda_images
    test_cuda_literals
    test_cuda_models)
# The sanitizers notice more in these tests: leaks after each failed allocation. Without sanitizers they are `exhaustive`.
set(mdot_sanitizer_tests test_faults test_library_faults)
# The sanitizers notice less in these tests: they compare texts and answers of the command and of Python, or properties of
# the shipped predictor and of generated code, over many questions. Other tests run the same code under the sanitizers, where
# these are `exhaustive`.
set(mdot_release_tests
    gpu_dry_run
    python_absurd_inputs
    python_commands
    python_compiler
    python_job
    python_layouts
    python_option_parts
    python_questions
    python_readme
    python_words
    test_encode_evaluate
    test_hardware_bound
    test_monotony
    test_shared_code
    test_shipped_predictor)
