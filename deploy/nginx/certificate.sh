#!/bin/sh
# Makes the gateway's local certificate, for localhost only, unless it is there
# and good for another month: certificate.sh DIR
set -eu
umask 077
mkdir -p "$1"
cd "$1"
if openssl x509 -checkend 2592000 -noout -in certificate.pem >/dev/null 2>&1; then
  exit 0
fi
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost,DNS:gateway,IP:127.0.0.1,IP:::1 \
  -addext extendedKeyUsage=serverAuth -keyout key.pem -out certificate.pem 2>/dev/null
