/** `machine.kubelet` and the fields of `machine` about the Kubernetes node. */
import * as v from 'valibot'
import { argument, described, flag, free, listOf, mapOf, section, text, unsigned } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import { isSubnet } from '../../network/documents/subnet.ts'
import { argumentRules } from './arguments.ts'
import { kubeletFieldRules } from './kubelet-fields.ts'
import { labelValueProblem, qualifiedNameProblem } from './names.ts'
import { sharedPaths } from './shared-paths.ts'

const mapping = listOf(
  section({
    containerID: described(unsigned(32), 'The first id on the disk.'),
    hostID: described(unsigned(32), 'The first id in the mount.'),
    size: described(unsigned(32), 'How many ids follow each other.'),
  }),
)

/** The section after decoding. */
export const kubelet = section({
  image: described(text, "The kubelet's image."),
  clusterDNS: v.pipe(
    listOf(text),
    v.description('Addresses of the DNS service inside the cluster.'),
    v.metadata({ example: ['10.96.0.10'] }),
  ),
  extraArgs: v.pipe(mapOf(argument), v.description('Flags for the kubelet.'), v.metadata({ example: { 'event-qps': '10' } })),
  extraMounts: described(
    listOf(
      section({
        destination: described(
          text,
          "The path in the kubelet's container. Below what it shares with the machine, which is /etc/kubernetes, /opt, /run, /tmp and /var, the mount is made on the machine too.",
        ),
        type: described(text, 'The type of the mount, usually bind.'),
        source: described(text, 'The path on the machine; a folder is made where nothing is.'),
        options: described(listOf(text), 'Options of the mount, like bind, rshared and rw.'),
        uidMappings: described(mapping, 'Which users own the files of a bind in the mount, instead of their owners on the disk.'),
        gidMappings: described(mapping, 'The same for groups; a mount has both or none.'),
      }),
    ),
    "More mounts in the kubelet's container.",
  ),
  extraConfig: v.pipe(
    free,
    v.description("Fields of the kubelet's own configuration file."),
    v.metadata({ example: { serverTLSBootstrap: true } }),
  ),
  credentialProviderConfig: described(free, 'Where the kubelet gets credentials for image registries.'),
  defaultRuntimeSeccompProfileEnabled: described(flag, 'Run pods under the default seccomp profile.'),
  registerWithFQDN: described(flag, 'Register the node under its full name.'),
  nodeIP: v.pipe(
    section({
      validSubnets: described(listOf(text), "Networks of which the node's addresses are taken; one with ! in front is left out."),
    }),
    v.description("Which networks the node's address may be taken from."),
    v.metadata({ example: { validSubnets: ['10.0.0.0/8', '!10.0.0.3/32'] } }),
  ),
  skipNodeRegistration: described(flag, 'Run the kubelet without joining a cluster.'),
  disableManifestsDirectory: described(flag, 'Take no static pods from /etc/kubernetes/manifests.'),
})

/** Fields about the node directly in `machine`. */
export const machineNodeFields = {
  kubelet: described(kubelet, "The node's agent of Kubernetes."),
  pods: described(listOf(free), 'Static pods of this machine, independent of the API server.'),
  nodeLabels: v.pipe(mapOf(text), v.description('Labels of the Kubernetes node.'), v.metadata({ example: { rack: 'r3' } })),
  nodeAnnotations: described(mapOf(text), 'Annotations of the Kubernetes node.'),
  nodeTaints: v.pipe(
    mapOf(text),
    v.description('Taints of the Kubernetes node.'),
    v.metadata({ example: { dedicated: 'storage:NoSchedule' } }),
  ),
  seccompProfiles: described(
    listOf(section({ name: described(text, 'The name of the file, as pods refer to it.'), value: described(free, 'The profile itself.') })),
    'Profiles that pods may name to limit their system calls.',
  ),
  controlPlane: described(
    section({
      controllerManager: described(section({ disabled: described(flag, 'Switches this off.') }), 'The controller manager of this machine.'),
      scheduler: described(section({ disabled: described(flag, 'Switches this off.') }), 'The scheduler of this machine.'),
    }),
    'Which parts of the control plane run on this machine.',
  ),
}

const machineNode = section(machineNodeFields)

const ownKubeletFields = [
  ...['apiVersion', 'authentication', 'authorization', 'cgroupRoot', 'kind', 'kubeletCgroups', 'port', 'protectKernelDefaults'],
  ...['resolvConf', 'rotateCertificates', 'systemCgroups', 'staticPodPath', 'seccompDefault'],
]

/** Whether a profile can be a file of this name. */
const isFileName = (name = ''): boolean => /^[^/\0]+$/.test(name) && name !== '.' && name !== '..'

type Mount = NonNullable<NonNullable<v.InferOutput<typeof machineNode>['kubelet']>['extraMounts']>[number]

/** What the kernel or the runtime would refuse of a mount's mappings. */
function idMappingProblem({ destination = '', type = 'bind', uidMappings = [], gidMappings = [] }: Mount): string | undefined {
  if (uidMappings.length === 0 && gidMappings.length === 0) return undefined
  if (uidMappings.length === 0 || gidMappings.length === 0) return 'users and groups are mapped together, give uidMappings and gidMappings'
  if (type !== 'bind') return `only a bind has mappings, and this mount is of the type ${JSON.stringify(type)}`
  if ([...uidMappings, ...gidMappings].some(({ size = 0 }) => size === 0)) return 'a size of at least 1 is required'
  const shared = sharedPaths.find((path) => destination === path || destination.startsWith(`${path}/`))
  return shared && `owners are not mapped below ${shared}, which is shared with the whole machine: mount it elsewhere`
}

/** Rules of these sections. */
export function machineNodeRules(machine: v.InferOutput<typeof machineNode>, report: Reporter): void {
  const { kubelet, nodeLabels = {}, nodeAnnotations = {}, nodeTaints = {}, seccompProfiles = [] } = machine
  for (const [index, { name }] of seccompProfiles.entries())
    if (!isFileName(name)) report.error(['machine', 'seccompProfiles', index, 'name'], 'the name of a file is required, like "audit.json"')
  for (const [index, subnet] of (kubelet?.nodeIP?.validSubnets ?? []).entries()) {
    if (!isSubnet(subnet))
      report.error(['machine', 'kubelet', 'nodeIP', 'validSubnets', index], `${JSON.stringify(subnet)} is not a subnet or address`)
  }
  for (const [index, { destination, source, options = [] }] of (kubelet?.extraMounts ?? []).entries()) {
    const at = ['machine', 'kubelet', 'extraMounts', index, 'destination']
    if (!destination) report.error(at, 'the path in the container is required')
    else if (sharedPaths.includes(destination.replace(/\/+$/, '')) && (source !== destination || options.includes('ro')))
      report.error(at, `${JSON.stringify(destination)} is shared with the whole machine and cannot be replaced, mount a folder below it`)
  }
  for (const [index, mount] of (kubelet?.extraMounts ?? []).entries()) {
    const problem = idMappingProblem(mount)
    if (problem) report.error(['machine', 'kubelet', 'extraMounts', index, 'uidMappings'], problem)
  }
  for (const key of Object.keys(kubelet?.extraConfig ?? {})) {
    if (ownKubeletFields.includes(key))
      report.error(['machine', 'kubelet', 'extraConfig', key], `${JSON.stringify(key)} is set by the system and cannot be changed here`)
  }
  const others = Object.entries(kubelet?.extraConfig ?? {}).filter(([key]) => !ownKubeletFields.includes(key))
  kubeletFieldRules(Object.fromEntries(others), kubelet?.image, report, ['machine', 'kubelet', 'extraConfig'])
  argumentRules('kubelet', kubelet, report, ['machine', 'kubelet'])
  for (const [key, value] of Object.entries(nodeLabels)) {
    const problem = qualifiedNameProblem(key) ?? labelValueProblem(value)
    if (problem) report.error(['machine', 'nodeLabels', key], problem)
  }
  let size = 0
  for (const [key, value] of Object.entries(nodeAnnotations)) {
    size += Buffer.byteLength(key) + Buffer.byteLength(value)
    const reserved = /^talos\.dev\/owned-(labels|annotations|taints)$/.test(key)
    const problem = reserved ? `${JSON.stringify(key)} is kept by the system` : qualifiedNameProblem(key.toLowerCase())
    if (problem) report.error(['machine', 'nodeAnnotations', key], problem)
  }
  if (size > 262144) report.error(['machine', 'nodeAnnotations'], `${size} bytes are more than the 262144 a node may have`)
  for (const [key, value] of Object.entries(nodeTaints)) {
    const parts = value.split(':')
    const [first = ''] = parts
    const effect = parts.at(-1) ?? ''
    const problem =
      qualifiedNameProblem(key) ??
      (parts.length > 2 || !['NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(effect)
        ? `${JSON.stringify(value)} is not an effect, NoSchedule, PreferNoSchedule or NoExecute, with an optional "value:" before it`
        : parts.length === 2
          ? labelValueProblem(first)
          : undefined)
    if (problem) report.error(['machine', 'nodeTaints', key], problem)
  }
}
