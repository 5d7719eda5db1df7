/** The labels that Kubernetes' NodeRestriction lets a node set on itself: of Kubernetes' own domains only those in a list. */

const allowed = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
])
const allowedDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io']
const ownDomains = ['kubernetes.io', 'k8s.io']

/** Whether a node may set this label on itself; the others take an administrator. */
export function nodeMaySetLabel(key: string): boolean {
  const slash = key.indexOf('/')
  if (slash < 0) return true
  const domain = key.slice(0, slash)
  const within = (parent: string) => domain === parent || domain.endsWith(`.${parent}`)
  if (within('node-restriction.kubernetes.io')) return false
  return allowed.has(key) || allowedDomains.some(within) || !ownDomains.some(within)
}
