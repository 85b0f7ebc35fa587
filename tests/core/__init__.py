"""The core's tests: rules and cases by number, properties against an independent witness, policies, tidiness."""
