//! The binary from outside: through MCP, the command line and processes. One program for all of
//! it, because linking a dozen of them takes longer than running them.

#[cfg(test)]
mod agent_limits;
#[cfg(test)]
mod agent_questions;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod audit_findings;
#[cfg(test)]
mod audit_reports;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod both_eras;
#[cfg(test)]
mod byte_comparison;
#[cfg(test)]
mod canary;
#[cfg(test)]
mod canary_shapes;
#[cfg(test)]
mod claude_code;
#[cfg(test)]
mod cli_call;
#[cfg(test)]
mod cli_completion;
#[cfg(test)]
mod cli_config;
#[cfg(test)]
mod cli_connect;
#[cfg(test)]
mod cli_doctor;
#[cfg(test)]
mod cli_errors;
#[cfg(test)]
mod cli_hostile;
#[cfg(test)]
mod cli_move;
#[cfg(test)]
mod cli_snapshots;
#[cfg(test)]
mod cli_terminal;
#[cfg(test)]
mod cli_tools;
#[cfg(test)]
mod cli_upstream;
#[cfg(test)]
mod config_torture;
#[cfg(test)]
mod drift;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod first_run;
#[cfg(test)]
mod functional_requirements;
#[cfg(test)]
mod hostile_upstreams;
#[cfg(test)]
mod intent_matrix;
#[cfg(test)]
mod interleaving;
#[cfg(test)]
mod interop;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod known_queries;
#[cfg(test)]
mod losslessness;
#[cfg(test)]
mod one_daemon;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod person;
#[cfg(test)]
mod principals;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod read_cache;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod real_peers;
#[cfg(test)]
mod rest_servers;
#[cfg(test)]
mod retrieve_tools;
#[cfg(test)]
mod rmcp_peers;
#[cfg(test)]
mod search_input;
#[cfg(test)]
mod security;
#[cfg(test)]
mod service;
#[cfg(test)]
mod simulate;
#[cfg(test)]
mod starting;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tool_list;
#[cfg(test)]
mod unannotated;
#[cfg(test)]
mod upstream_life;
