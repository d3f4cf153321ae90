#!/bin/sh
# Makes the webhook's certificate, valid for a year, with a certificate authority of its own, whose key is thrown away. Prints a
# Secret and the webhook's configuration: pipe them to kubectl apply. Run it again before the year ends.
#
#     cluster/kueue/certificates.sh [NAMESPACE, by default mdot-system] | kubectl apply -f -
set -eu
namespace=${1:-mdot-system}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work"
name=mdot-kueue.$namespace.svc
openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj "/CN=mdot-kueue webhook authority" -keyout ca.key -out ca.crt 2> log ||
    { cat log >&2; exit 1; }
openssl req -newkey rsa:3072 -nodes -subj "/CN=$name" -keyout tls.key -out tls.csr 2> log || { cat log >&2; exit 1; }
printf 'subjectAltName=DNS:%s,DNS:%s.cluster.local\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n' "$name" "$name" > extensions
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile extensions -out tls.crt 2> log ||
    { cat log >&2; exit 1; }
cat << END
apiVersion: v1
kind: Secret
metadata:
  name: mdot-kueue-certificates
  namespace: $namespace
type: kubernetes.io/tls
data:
  tls.crt: $(base64 -w 0 tls.crt)
  tls.key: $(base64 -w 0 tls.key)
---
END
sed -e "s|CA_BUNDLE\$|$(base64 -w 0 ca.crt)|" -e "s/namespace: mdot-system/namespace: $namespace/" "$here/manifests/webhook.yaml"
