# Holds a short conversation with the embedded model, then shows the window, the record, a summary and the verification.
# `make demo` runs it.
set -eu
RECTO_MODEL=$(recto config get model)
RECTO_HOME=$(mktemp -d)
export RECTO_MODEL RECTO_HOME RECTO_VAULT="$(dirname "$0")/vault"
trap 'rm -rf "$RECTO_HOME"' EXIT

step() {
	printf '\n\033[1m$ %s\033[0m\n' "$*"
	"$@"
}

step recto ask "When was the boat in [[Welcome]] built?"
step recto ask --continue "How long is the boat in [[Sorrel]]?"
step recto context show --message "Who owns her?"
step recto request show
step recto context compact --set context.recent_messages_to_keep=1
step recto context summary
step recto request verify --all
