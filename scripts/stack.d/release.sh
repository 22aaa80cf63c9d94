# shellcheck shell=bash
# The stack's programs: those of a release that was made of this very tree, where its
# archive is at hand, which needs neither Go nor the minutes of a compiler; else compiled.

# What the services are, and what only a stack like this one has.
services=(migrate report-service photo-worker notification-service delivery-worker)
stack_programs=(servers mailbox demo)

# The archive that find_release has found, or nothing.
archive=''

# find_release looks for the archive of a release of this tree: in bin/release, where
# `make release` puts it, or beside the clone, where somebody saved it with SHA256SUMS.
# A changed tree has no release.
find_release() {
  local version folder name machine
  archive=''
  machine=$(uname -m)
  case $(uname -s)-$machine in
    Linux-x86_64) machine=amd64 ;;
    Linux-aarch64) machine=arm64 ;;
    *) return 0 ;;
  esac
  read -r version _ < <("$root/scripts/version.sh") || return 0
  name=cityconnect-$version-linux-$machine.tar.gz
  for folder in "$root/bin/release" "$(dirname "$root")"; do
    [[ -r $folder/$name ]] || continue
    archive=$folder/$name
    is_whole "$archive" ||
      fault "$archive must be what SHA256SUMS of the release beside it says; download both again, or remove the archive, and the programs are compiled"
    return 0
  done
}

# is_whole compares a file with its line in the SHA256SUMS beside it.
is_whole() {
  local folder name
  folder=$(dirname "$1") name=$(basename "$1")
  (cd "$folder" && grep -sF "  $name" SHA256SUMS | sha256sum --check --status)
}

# unpack_release puts the programs of the archive where compiled ones are, unless they
# are there.
unpack_release() {
  local noted=$state/bin/release work=$state/bin.new checksum
  checksum=$(sha256sum <"$archive")
  [[ $checksum != "$(cat "$noted" 2>/dev/null)" ]] || return 0
  rm -rf "$work"
  mkdir -p "$work" "$state/bin"
  tar -xzf "$archive" -C "$work" --strip-components 1
  # One that runs keeps its file, and is replaced by its name.
  mv -f "${services[@]/#/$work/}" "${stack_programs[@]/#/$work/demo/}" "$state/bin/"
  rm -rf "$work"
  echo "$checksum" >"$noted"
}

# build compiles programs into the stack's own folder as the images have them: they
# call no C, and nobody debugs them. Leaving out what a debugger reads takes a
# quarter off the first build, and the client of S3 servers, without a bucket, a twelfth.
# What go says of its downloads is in the log.
build() {
  local tags=nobucket log=$state/logs/build.log
  [[ ${PHOTO_STORE-} != s3:* ]] || tags=''
  mkdir -p "$state/bin" "$state/logs"
  rm -f "$state/bin/release"
  (cd "$root" && CGO_ENABLED=0 go build -tags="$tags" -ldflags="-s -w $(scripts/version.sh flags)" -gcflags=all=-dwarf=false -o "$state/bin/" "$@") >"$log" 2>&1 9>&- || {
    grep -v '^go: downloading ' "$log" >&2
    die "the build failed"
  }
}
