# A short conversation with the embedded model, then what was sent for it: window, record, proof. Run by `make demo`.
set -eu
RECTO_HOME=$(mktemp -d)
export RECTO_HOME RECTO_VAULT="$(dirname "$0")/vault"
trap 'rm -rf "$RECTO_HOME"' EXIT

step() {
	printf '\n\033[1m$ %s\033[0m\n' "$*"
	"$@"
}

step recto ask "What is in [[Welcome]]?"
step recto ask --continue "Who owns the boat?"
step recto context show --message "When was she built?"
step recto request show
step recto request verify --all
