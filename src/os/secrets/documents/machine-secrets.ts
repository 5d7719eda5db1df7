/** Secrets in the v1alpha1 document: which are required, and where they are refused. */
import { certificate, certificateAndKey, described, listOf, text } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import type { Path } from '../../../document/path.ts'
import { matches, parseCertificates } from '../../../pki/certificate.ts'
import { parseKey } from '../../../pki/key.ts'
import { DecodeError } from '../../../wire/decode-error.ts'

/** Fields of `machine` about trust. */
export const machineSecretFields = {
  token: described(text, 'The token with which a machine joins the cluster.'),
  ca: described(certificateAndKey, 'The authority of the machine API; workers hold only the certificate.'),
  acceptedCAs: described(listOf(certificate), 'More authorities that are trusted, while one is being replaced.'),
  certSANs: described(listOf(text), "More names in the machine's certificates."),
}

interface Secrets {
  crt?: string | undefined
  key?: string | undefined
}

interface Document {
  machine?: { token?: string | undefined; ca?: Secrets | undefined; acceptedCAs?: Secrets[] | undefined } | undefined
  cluster?:
    | {
        id?: string | undefined
        secret?: string | undefined
        secretboxEncryptionSecret?: string | undefined
        aescbcEncryptionSecret?: string | undefined
        token?: string | undefined
        ca?: Secrets | undefined
        acceptedCAs?: Secrets[] | undefined
        aggregatorCA?: Secrets | undefined
        serviceAccount?: { key?: string | undefined } | undefined
        etcd?: { ca?: Secrets | undefined } | undefined
      }
    | undefined
}

const generated = 'required: generate the secrets with "talosctl gen secrets" or "talosctl gen config"'

/** Rules of the secrets. */
export function secretRules(document: Document, report: Reporter, isWorker: boolean): void {
  const { machine = {}, cluster = {} } = document
  const { ca, acceptedCAs = [] } = machine
  if (!ca && acceptedCAs.length === 0) report.error(['machine', 'ca'], generated)
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
  if (document.machine && document.cluster) joiningRules(machine, cluster, report, isWorker)
  wholeRules(document, report)
  formRules(document, report)
}

/** Without these a machine starts and then waits forever for a cluster. */
function joiningRules(
  machine: NonNullable<Document['machine']>,
  cluster: NonNullable<Document['cluster']>,
  report: Reporter,
  isWorker: boolean,
): void {
  if (!machine.token) report.error(['machine', 'token'], generated)
  if (!cluster.token) report.error(['cluster', 'token'], generated)
  if (!cluster.ca?.crt && (cluster.acceptedCAs ?? []).length === 0) report.error(['cluster', 'ca'], generated)
  if (isWorker) return
  if (cluster.ca?.crt && !cluster.ca.key) report.error(['cluster', 'ca', 'key'], 'a control plane needs the key of the authority')
  if (!cluster.etcd) report.error(['cluster', 'etcd', 'ca'], generated)
  if (!cluster.aggregatorCA?.crt || !cluster.aggregatorCA.key) report.error(['cluster', 'aggregatorCA'], generated)
  if (!cluster.serviceAccount?.key) report.error(['cluster', 'serviceAccount', 'key'], generated)
}

/** Certificates and keys must parse: a value that was cut off is still valid YAML. */
function wholeRules({ machine = {}, cluster = {} }: Document, report: Reporter): void {
  const pairs: [Path, Secrets | undefined][] = [
    [['machine', 'ca'], machine.ca],
    ...(machine.acceptedCAs ?? []).map((each, i): [Path, Secrets] => [['machine', 'acceptedCAs', i], each]),
    [['cluster', 'ca'], cluster.ca],
    ...(cluster.acceptedCAs ?? []).map((each, i): [Path, Secrets] => [['cluster', 'acceptedCAs', i], each]),
    [['cluster', 'aggregatorCA'], cluster.aggregatorCA],
    [['cluster', 'serviceAccount'], cluster.serviceAccount],
    [['cluster', 'etcd', 'ca'], cluster.etcd?.ca],
  ]
  for (const [path, pair] of pairs) {
    if (!pair) continue
    const problem = pairProblem(pair)
    if (problem) report.error([...path, problem.key], problem.message)
  }
}

const cutOff = 'base64 of PEM is expected, and this is something else or cut off'

function pairProblem({ crt, key }: Secrets): { key: 'crt' | 'key'; message: string } | undefined {
  const pem = (text: string) => Buffer.from(text, 'base64').toString()
  if (crt && !reads(() => parseCertificates(pem(crt)).length > 0)) return { key: 'crt', message: `not a certificate: ${cutOff}` }
  if (key && !reads(() => parseKey(pem(key)).kind !== undefined)) return { key: 'key', message: `not a private key: ${cutOff}` }
  if (crt && key && !reads(() => matches({ crt: pem(crt), key: pem(key) })))
    return { key: 'key', message: 'not the key of the certificate beside it' }
  return undefined
}

function reads(read: () => boolean): boolean {
  try {
    return read()
  } catch (error) {
    if (error instanceof DecodeError) return false
    throw error
  }
}

/** Secrets other than PEM: formats and lengths without which the programs that use them would not start. */
function formRules({ machine = {}, cluster = {} }: Document, report: Reporter): void {
  if (cluster.token && !/^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(cluster.token))
    report.error(['cluster', 'token'], 'not a bootstrap token of Kubernetes: six characters of a-z and 0-9, a dot, and sixteen more')
  if (machine.token && machine.token.length < 16)
    report.warning(['machine', 'token'], `${machine.token.length} characters can be guessed: generate one with "talosctl gen secrets"`)
  for (const [key, lengths] of [
    ['secret', [32]],
    ['secretboxEncryptionSecret', [32]],
    ['aescbcEncryptionSecret', [16, 24, 32]],
  ] as const) {
    const value = cluster[key]
    if (!value) continue
    const length = bytesOf(value)
    if (length === undefined || !(lengths as readonly number[]).includes(length))
      report.error(
        ['cluster', key],
        `expected base64 of ${lengths.join(', ')} bytes, got ${length === undefined ? 'no base64' : `${length} bytes`}`,
      )
  }
  if (cluster.id && (cluster.id.length > 256 || /[^\x21-\x7e]/.test(cluster.id)))
    report.error(['cluster', 'id'], 'expected at most 256 printable characters without spaces')
}

/** The number of bytes that a base64 text encodes; undefined when it is not base64. */
function bytesOf(text: string): number | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0) return undefined
  return Buffer.from(text, 'base64').length
}
