#!/bin/sh
# Makes the keys and certificates of a federation in the folder `keys`, one folder for each host:
#
#     sh keys.sh [NAME OF THE SERVER]...
#
# The names, or addresses, are those by which nodes reach the server.  In earnest, each silo makes
# its own folder `silo-N`, sends `silo-N.pub` to the server's operator, and gets `ca.pem`.
set -eu
umask 077
[ $# -gt 0 ] || set -- superlink localhost

names=IP:127.0.0.1
for name in "$@"; do
  case $name in
    "" | *[!A-Za-z0-9.:*-]*) echo "'$name' is neither a name nor an address" >&2; exit 1 ;;
    *[!0-9.]*) case $name in *:*) kind=IP ;; *) kind=DNS ;; esac ;;
    *) kind=IP ;;
  esac
  names=$names,$kind:$name
done
if [ -e keys ]; then
  echo "keys is there already: to make others, move it away" >&2
  exit 1
fi
mkdir keys
cd keys

# A certificate by the authority $1 for the names $3, as $2.pem and $2.key.
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=tffc" \
    -keyout "$2.key" -out request.csr 2>errors || { cat errors >&2; exit 1; }
  echo "subjectAltName=$3" >names
  openssl x509 -req -in request.csr -CA "$1.pem" -CAkey "$1.key" -CAcreateserial -days 365 \
    -extfile names -out "$2.pem" 2>errors || { cat errors >&2; exit 1; }
  rm -f request.csr names errors
}

authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
    -subj "/CN=authority" -keyout "$1.key" -out "$1.pem" 2>errors || { cat errors >&2; exit 1; }
  rm -f errors
}

authority ca
mkdir server public
certificate ca server/server "$names"
cp ca.pem server

for silo in 0 1 2; do
  mkdir silo-$silo
  ssh-keygen -q -t ecdsa -b 384 -N "" -C "" -f silo-$silo/key
  cp silo-$silo/key.pub public/silo-$silo.pub
  cp ca.pem silo-$silo
  # For the node's own address, where only its own processes connect to it.
  authority silo-$silo/local-ca
  certificate silo-$silo/local-ca silo-$silo/local IP:127.0.0.1
  rm silo-$silo/local-ca.key silo-$silo/local-ca.srl
done
