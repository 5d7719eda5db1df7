/** Secrets in the legacy document: which must be there, and where they must not. */
import * as v from 'valibot'
import { certificate, certificateAndKey, listOf, text } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'

/** Fields of `machine` about who is trusted. */
export const machineSecretFields = {
  token: v.pipe(text, v.description('The token with which a machine joins the cluster.')),
  ca: v.pipe(certificateAndKey, v.description('The authority of the machine API; workers hold only the certificate.')),
  acceptedCAs: v.pipe(listOf(certificate), v.description('More authorities that are trusted, while one is being replaced.')),
  certSANs: v.pipe(listOf(text), v.description("More names in the machine's certificates.")),
}

interface Secrets {
  crt?: string
  key?: string
}

interface Document {
  machine?: { ca?: Secrets; acceptedCAs?: { crt?: string }[] }
  cluster?: { ca?: Secrets; etcd?: { ca?: Secrets } }
}

/** Rules of the secrets. */
export function secretRules({ machine = {}, cluster = {} }: Document, report: Reporter, isWorker: boolean): void {
  const { ca, acceptedCAs = [] } = machine
  if (!ca && acceptedCAs.length === 0)
    report.error(['machine', 'ca'], 'required: generate the secrets with "talosctl gen secrets" or "talosctl gen config"')
  else if (isWorker) {
    if (!ca?.crt && acceptedCAs.length === 0) report.error(['machine', 'ca', 'crt'], 'the certificate of the authority is required')
    if (ca?.key) report.error(['machine', 'ca', 'key'], 'a worker does not hold the key of the authority')
  } else {
    for (const key of ['crt', 'key'] as const) {
      if (!ca?.[key])
        report.error(['machine', 'ca', key], `a control plane needs the ${key === 'crt' ? 'certificate' : 'key'} of the authority`)
    }
  }
  if (isWorker && cluster.ca?.key) report.error(['cluster', 'ca', 'key'], 'a worker does not hold the key of the authority')
  if (!isWorker && cluster.etcd && (!cluster.etcd.ca?.crt || !cluster.etcd.ca.key)) {
    report.error(['cluster', 'etcd', 'ca'], 'certificate and key of the authority of etcd are required')
  }
}
