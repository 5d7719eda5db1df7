import type { KubeObject } from '../../kube/object.ts'
import { parseCSR } from '../../pki/request.ts'

/** Why a kubelet's request for a serving certificate may not be granted; undefined when it may. */
export function servingRequestProblem(request: KubeObject, node: KubeObject | undefined): string | undefined {
  const spec = request.spec as { username?: string; groups?: string[]; usages?: string[]; request?: string }
  if (!spec.username?.startsWith('system:node:') || !spec.groups?.includes('system:nodes')) return 'who asks is not a node'
  if (!node) return `node "${spec.username.slice('system:node:'.length)}" is not in the cluster`
  const allowed = new Set(['digital signature', 'key encipherment', 'server auth'])
  if (!spec.usages?.includes('server auth') || spec.usages.some((usage) => !allowed.has(usage))) return 'it is not for serving alone'
  let asked: ReturnType<typeof parseCSR>
  try {
    asked = parseCSR(Buffer.from(spec.request ?? '', 'base64').toString())
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  if (asked.subject.commonName !== spec.username) return `the subject "${asked.subject.commonName ?? ''}" is not the one who asks`
  const organizations = asked.subject.organizations ?? []
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes') return 'the organization is not "system:nodes"'
  const { addresses = [] } = (node.status ?? {}) as { addresses?: { address: string }[] }
  const known = new Set(addresses.map(({ address }) => address))
  const { dns = [], ips = [] } = asked.extensions.altNames ?? {}
  if (dns.length + ips.length === 0) return 'it names no address'
  const foreign = [...dns, ...ips].find((name) => !known.has(name))
  return foreign === undefined ? undefined : `"${foreign}" is not a name or address of the node`
}
