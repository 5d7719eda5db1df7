import type { KubeObject } from '../../../kube/object.ts'
import { parseCSR } from '../../../pki/request.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { formatIp, parseIp } from '../../../wire/ip.ts'
import { selects } from '../../../wire/prefix.ts'

/** A node's record in discovery, by its name in Kubernetes. */
export interface KnownMember {
  nodename: string
  hostname: string
  addresses: readonly string[]
}

/** The records of the cluster that a request is compared with. */
export interface ServingRecords {
  /** Every Node of the API server. */
  nodes: readonly KubeObject[]
  /** The members of discovery; undefined while it is disabled. */
  members: readonly KnownMember[] | undefined
  /** Names and addresses in the API server's certificate, and the endpoint of the control plane. */
  apiServer: readonly string[]
  serviceSubnets: readonly string[]
  dnsDomain: string
}

const roleLabel = 'node-role.kubernetes.io/control-plane'
/** Addresses that mean another machine to each of their users, or none. */
const nobodys = ['127.0.0.0/8', '::1/128', '0.0.0.0/8', '::/128', '169.254.0.0/16', 'fe80::/10', '224.0.0.0/4', 'ff00::/8']

/**
 * Why a kubelet may not have the serving certificate it requests, undefined when it may. The certificate is signed by the
 * cluster's authority, which everything in the cluster trusts, and a node writes the addresses in its own status. So a name or
 * address is accepted only when discovery's record of the node has it (without discovery: the node's status) and no other node
 * has it too. Those of the API server and of services are never accepted.
 */
export function servingRequestProblem(request: KubeObject, records: ServingRecords): string | undefined {
  const spec = request.spec as { username?: string; groups?: string[]; usages?: string[]; request?: string }
  if (!spec.username?.startsWith('system:node:') || !spec.groups?.includes('system:nodes')) return 'the requester is not a node'
  const nodename = spec.username.slice('system:node:'.length)
  const allowed = new Set(['digital signature', 'key encipherment', 'server auth'])
  if (!spec.usages?.includes('server auth') || spec.usages.some((usage) => !allowed.has(usage))) return 'it is not for serving alone'
  let csr: ReturnType<typeof parseCSR>
  try {
    csr = parseCSR(Buffer.from(spec.request ?? '', 'base64').toString())
  } catch (error) {
    return messageOf(error)
  }
  if (csr.subject.commonName !== spec.username) return `the subject "${csr.subject.commonName ?? ''}" is not the requester`
  const organizations = csr.subject.organizations ?? []
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes') return 'the organization is not "system:nodes"'
  const { dns = [], ips = [] } = csr.extensions.altNames ?? {}
  if (dns.length + ips.length === 0) return 'it names no address'
  const node = records.nodes.find(({ metadata }) => metadata.name === nodename)
  if (!node) return `node "${nodename}" is not in the cluster`
  const member = records.members?.find((one) => one.nodename === nodename)
  if (records.members && !member) return `discovery does not know node "${nodename}"`
  const known = new Set((member ? [nodename, member.hostname, ...member.addresses] : statusAddresses(node)).map(canonical))
  for (const name of [...dns, ...ips].map(canonical)) {
    const problem = nameProblem(name, { records, node, nodename, known })
    if (problem) return problem
  }
  return undefined
}

interface Requester {
  records: ServingRecords
  node: KubeObject
  nodename: string
  known: ReadonlySet<string>
}

/** Why one name or address may not be in a kubelet's certificate. */
function nameProblem(name: string, { records, node, nodename, known }: Requester): string | undefined {
  if (isReserved(name, records)) return `"${name}" stands for no single node`
  // A control plane node is in the API server's certificate itself; nodes cannot give themselves its label.
  const isControlPlane = roleLabel in (node.metadata.labels ?? {})
  if (!isControlPlane && records.apiServer.some((one) => canonical(one) === name)) return `"${name}" is the API server's`
  if (!known.has(name)) return `"${name}" is not a name or address of the node`
  const other = records.nodes.find((one) => one.metadata.name !== nodename && holds([one.metadata.name, ...statusAddresses(one)], name))
  if (other) return `node "${other.metadata.name}" has "${name}" too`
  const twin = records.members?.find((one) => one.nodename !== nodename && holds([one.nodename, one.hostname, ...one.addresses], name))
  return twin && `node "${twin.nodename}" has "${name}" too`
}

/** Names that no kubelet may have: wildcards, names of services and of the cluster's DNS, loopback and service addresses. */
function isReserved(name: string, { serviceSubnets, dnsDomain }: ServingRecords): boolean {
  if (parseIp(name)) return selects([...nobodys, ...serviceSubnets], name)
  if (!/^[a-z0-9.-]+$/.test(name)) return true
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  return /^kubernetes(\.default(\.svc)?)?$/.test(name) || name.endsWith('.svc') || name === dnsDomain || name.endsWith(`.${dnsDomain}`)
}

/** A node's own addresses in its status, without those that clouds add and their names, which cannot be verified. */
function statusAddresses({ status }: KubeObject): string[] {
  const { addresses = [] } = (status ?? {}) as { addresses?: { type: string; address: string }[] }
  return addresses.filter(({ type }) => type === 'InternalIP' || type === 'Hostname').map(({ address }) => address)
}

const holds = (names: readonly (string | undefined)[], name: string) => names.some((one) => one !== undefined && canonical(one) === name)

function canonical(name: string): string {
  const bytes = parseIp(name)
  return bytes ? formatIp(bytes) : name.toLowerCase()
}
