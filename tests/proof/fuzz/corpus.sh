# Sourced: a corpus is one archive per harness, tests/proof/fuzz/corpus/NAME.tar.gz, the same bytes for the same files.
# shellcheck shell=bash

# corpus_unpack ARCHIVE FOLDER
corpus_unpack() { mkdir -p "$2" && tar -xzf "$1" -C "$2"; }

# corpus_pack FOLDER ARCHIVE
corpus_pack() {
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -cf - -C "$1" \
		--transform='s,^\./,,' --no-recursion --files-from=<(cd "$1" && find . -type f | sort) | gzip -9n >"$2"
}
