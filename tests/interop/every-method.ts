/**
 * Every method of the API, called on a real cluster by the official generated stubs: requests and expected replies.
 * An answer is the list of messages; a refusal `{ code, message }`.
 */

import { expect } from 'bun:test'

/** Addresses and names of the cluster that is called. */
export interface Target {
  readonly controlPlane: string
  readonly worker: string
  readonly name: string
  /** An image that every node holds. */
  readonly image: string
  /** An image of one program, as base64 of an archive, and its name there. */
  readonly archive: string
  readonly guest: string
  /** A time server that answers. */
  readonly timeServer: string
}

/** One call. */
export interface Call {
  readonly requests: readonly object[]
  /** Which node is to answer; the control plane by default. */
  readonly node?: 'worker'
  /** So many answers of a stream are read. */
  readonly limit?: number
  readonly answer: unknown
}

const some = expect.any(String)
const one = (message: object) => [{ messages: [expect.objectContaining(message)] }]
const refused = (code: string, message = '') => ({ code, message: expect.stringContaining(message) })
const data = (pattern: RegExp) => expect.objectContaining({ bytes: expect.stringMatching(pattern) })
const unsupported = refused('FailedPrecondition', 'method is not supported in container mode')
const rows = (...wanted: object[]) => expect.arrayContaining(wanted.map((row) => expect.objectContaining(row)))

/** The calls by path, in an order in which none spoils the next; those that end a node come last, and are called separately. */
export function everyMethod(target: Target): Record<string, Call> {
  const { controlPlane, worker, name, image, archive, guest, timeServer } = target
  const pods = { driver: 'CRI', namespace: 'NS_CRI' }
  const memory = { driver: 'CONTAINERD', namespace: 'NS_SYSTEM' }
  const hostname = { namespace: 'network', type: 'HostnameStatuses.net.talos.dev', id: 'hostname' }
  const shown = { resource: expect.objectContaining({ metadata: expect.objectContaining({ ...hostname, phase: 'running' }) }) }
  const health = { waitTimeout: '120s', clusterInfo: { controlPlaneNodes: [controlPlane], workerNodes: [worker] } }
  const netstat = { filter: 'LISTENING', feature: { pid: true }, l4proto: { tcp: true }, netns: { hostnetwork: true } }
  return {
    'machine.MachineService/Version': {
      requests: [{}],
      answer: one({ version: expect.objectContaining({ tag: expect.stringMatching(/^v1\.13\./) }) }),
    },
    'machine.MachineService/Hostname': { requests: [{}], node: 'worker', answer: one({ hostname: `${name}-worker-1` }) },
    'machine.MachineService/ApplyConfiguration': {
      requests: [{ data: 'eA==', dryRun: true }],
      answer: refused('InvalidArgument', 'a configuration document is a map'),
    },
    'machine.MachineService/Bootstrap': { requests: [{}], answer: refused('AlreadyExists', 'the cluster is bootstrapped') },
    'machine.MachineService/Containers': {
      requests: [{ namespace: 'system' }],
      answer: one({ containers: rows({ id: 'apid', status: 'RUNNING' }, { id: 'etcd' }) }),
    },
    'machine.MachineService/CPUFreqStats': { requests: [{}], answer: [expect.objectContaining({ messages: [expect.anything()] })] },
    'machine.MachineService/CPUInfo': { requests: [{}], answer: one({ cpuInfo: rows({ modelName: some }) }) },
    'machine.MachineService/DiskStats': { requests: [{}], answer: one({ total: expect.objectContaining({ name: 'total' }) }) },
    'machine.MachineService/EtcdMemberList': {
      requests: [{}],
      answer: one({ members: rows({ hostname: `${name}-controlplane-1`, peerUrls: [`https://${controlPlane}:2380`] }) }),
    },
    'machine.MachineService/EtcdRemoveMemberByID': { requests: [{ memberId: '1' }], answer: refused('NotFound', 'etcd has no member 1') },
    'machine.MachineService/EtcdLeaveCluster': { requests: [{}], answer: refused('FailedPrecondition', 'the only voting member') },
    'machine.MachineService/EtcdForfeitLeadership': { requests: [{}], answer: refused('FailedPrecondition', 'no other voting member') },
    'machine.MachineService/EtcdRecover': {
      requests: [{ bytes: 'eA==' }],
      answer: refused('FailedPrecondition', 'etcd has data on this node'),
    },
    'machine.MachineService/EtcdAlarmList': { requests: [{}], answer: [{ messages: [expect.anything()] }] },
    'machine.MachineService/EtcdAlarmDisarm': { requests: [{}], answer: [{ messages: [expect.anything()] }] },
    'machine.MachineService/EtcdDefragment': { requests: [{}], answer: [{ messages: [expect.anything()] }] },
    'machine.MachineService/EtcdStatus': {
      requests: [{}],
      answer: one({ memberStatus: expect.objectContaining({ leader: some, raftTerm: some }) }),
    },
    'machine.MachineService/EtcdDowngradeValidate': {
      requests: [{ version: '3.5' }],
      answer: one({ clusterDowngrade: { clusterVersion: '3.6' } }),
    },
    'machine.MachineService/EtcdDowngradeEnable': {
      requests: [{ version: '3.4' }],
      answer: refused('InvalidArgument', 'invalid downgrade target version'),
    },
    'machine.MachineService/EtcdDowngradeCancel': { requests: [{}], answer: one({ clusterDowngrade: { clusterVersion: '3.6' } }) },
    'machine.MachineService/EtcdSnapshot': { requests: [{}], limit: 2, answer: [data(/^AAAA/), expect.anything()] },
    'machine.MachineService/LoadAvg': { requests: [{}], answer: one({ load1: expect.any(Number) }) },
    'machine.MachineService/LogsContainers': {
      requests: [{}],
      answer: one({ ids: expect.arrayContaining(['apid', 'audit', 'controller-runtime', 'kernel', 'kubelet', 'machined']) }),
    },
    'machine.MachineService/Memory': { requests: [{}], answer: one({ meminfo: expect.objectContaining({ memtotal: some }) }) },
    'machine.MachineService/Mounts': { requests: [{}], answer: one({ stats: rows({ mountedOn: '/' }, { mountedOn: '/var' }) }) },
    'machine.MachineService/NetworkDeviceStats': { requests: [{}], answer: one({ devices: rows({ name: 'lo' }, { name: 'eth0' }) }) },
    'machine.MachineService/Processes': { requests: [{}], answer: one({ processes: rows({ pid: 1, args: '/sbin/init' }) }) },
    'machine.MachineService/SystemStat': { requests: [{}], answer: one({ bootTime: some }) },
    'machine.MachineService/Stats': {
      requests: [{ namespace: 'system' }],
      answer: one({ stats: rows({ id: 'apid', memoryUsage: some }) }),
    },
    'machine.MachineService/Netstat': {
      requests: [netstat],
      answer: one({ connectrecord: rows({ localport: 10248, state: 'LISTEN', process: expect.objectContaining({ name: 'kubelet' }) }) }),
    },
    'machine.MachineService/ServiceList': {
      requests: [{}],
      node: 'worker',
      answer: one({ services: rows({ id: 'kubelet' }, { id: 'apid', state: 'Running' }) }),
    },
    'machine.MachineService/ServiceStop': {
      requests: [{ id: 'kubelet' }],
      node: 'worker',
      answer: one({ resp: 'Service "kubelet" stopped' }),
    },
    'machine.MachineService/ServiceStart': {
      requests: [{ id: 'kubelet' }],
      node: 'worker',
      answer: one({ resp: 'Service "kubelet" started' }),
    },
    'machine.MachineService/ServiceRestart': {
      requests: [{ id: 'kubelet' }],
      node: 'worker',
      answer: one({ resp: 'Service "kubelet" restarted' }),
    },
    'machine.MachineService/Restart': {
      requests: [{ namespace: 'system', id: 'nobody' }],
      answer: refused('NotFound', 'container "nobody" does not exist'),
    },
    'machine.MachineService/GenerateClientConfiguration': {
      requests: [{ roles: ['os:reader'], crtTtl: '3600s' }],
      answer: one({ ca: some, crt: some, key: some, talosconfig: some }),
    },
    'machine.MachineService/Copy': { requests: [{ rootPath: '/etc/os-release' }], answer: expect.arrayContaining([data(/^H4sI/)]) },
    'machine.MachineService/Read': { requests: [{ path: '/etc/os-release' }], answer: [data(/^TkFNRT0iSWNob3Ii/)] },
    'machine.MachineService/List': { requests: [{ root: '/etc' }], answer: rows({ name: '/etc', isDir: true }, { relativeName: 'cni' }) },
    'machine.MachineService/DiskUsage': { requests: [{ paths: ['/etc'] }], answer: rows({ relativeName: 'kubernetes', size: some }) },
    'machine.MachineService/Kubeconfig': { requests: [{}], answer: [data(/^H4sI/)] },
    'machine.MachineService/Logs': { requests: [{ namespace: 'system', id: 'apid', tailLines: 1 }], answer: [data(/./)] },
    'machine.MachineService/Dmesg': { requests: [{}], limit: 2, answer: [data(/./), data(/./)] },
    'machine.MachineService/Events': {
      requests: [{ tailEvents: 2 }],
      limit: 2,
      answer: [expect.objectContaining({ id: some }), expect.objectContaining({ data: expect.anything() })],
    },
    'machine.MachineService/PacketCapture': {
      requests: [{ interface: 'eth0', snapLen: 100 }],
      limit: 2,
      answer: [data(/^1MOyoQ/), data(/./)],
    },
    'machine.MachineService/ImageList': { requests: [{ namespace: 'NS_CRI' }], answer: rows({ name: image, digest: some, size: some }) },
    'machine.MachineService/ImagePull': {
      requests: [{ namespace: 'NS_CRI', reference: image }],
      answer: [{ messages: [expect.anything()] }],
    },
    'machine.MachineService/MetaWrite': { requests: [{ key: 10, value: 'eA==' }], answer: unsupported },
    'machine.MachineService/MetaDelete': { requests: [{ key: 10 }], answer: unsupported },
    'machine.MachineService/Rollback': { requests: [{}], answer: unsupported },
    'machine.MachineService/Upgrade': { requests: [{ image: 'x.test/y:v1' }], answer: unsupported },
    'machine.LifecycleService/Install': { requests: [{}], answer: unsupported },
    'machine.LifecycleService/Upgrade': { requests: [{}], answer: unsupported },
    'machine.ImageService/List': { requests: [{ containerd: pods }], answer: rows({ name: image }) },
    'machine.ImageService/Pull': { requests: [{ containerd: pods, imageRef: image }], answer: expect.arrayContaining([{ name: image }]) },
    'machine.ImageService/Verify': { requests: [{ imageRef: image }], answer: [expect.objectContaining({ message: some })] },
    'machine.ImageService/Import': { requests: [{ containerd: memory }, { imageChunk: { bytes: archive } }], answer: [{ name: guest }] },
    'machine.DebugService/ContainerRun': {
      requests: [{ spec: { containerd: memory, imageName: guest, args: ['/guest', 'exit', '7'], profile: 'PROFILE_PRIVILEGED' } }],
      answer: [{ stdoutData: Buffer.from('ends with 7\n').toString('base64') }, { exitCode: 7 }],
    },
    'machine.ImageService/Remove': { requests: [{ containerd: memory, imageRef: guest }], answer: [{}] },
    'cluster.ClusterService/HealthCheck': {
      requests: [health],
      answer: rows({ message: 'waiting for etcd to be healthy: OK' }, { message: 'waiting for all k8s nodes to report schedulable: OK' }),
    },
    'inspect.InspectService/ControllerRuntimeDependencies': {
      requests: [{}],
      answer: one({ edges: rows({ controllerName: 'network.HostnameSpecController' }) }),
    },
    'storage.StorageService/Disks': { requests: [{}], answer: [{ messages: [expect.anything()] }] },
    'storage.StorageService/BlockDeviceWipe': { requests: [{ devices: [{ device: 'sda' }] }], answer: unsupported },
    // The machine's own time servers may be unreachable from here, which is an error with that cause.
    'time.TimeService/Time': { requests: [{}], answer: expect.anything() },
    'time.TimeService/TimeCheck': {
      requests: [{ server: timeServer }],
      answer: one({ server: timeServer, localtime: some, remotetime: some }),
    },
    'cosi.resource.State/Get': { requests: [hostname], answer: [expect.objectContaining(shown)] },
    'cosi.resource.State/List': { requests: [{ namespace: hostname.namespace, type: hostname.type }], answer: rows(shown) },
    'cosi.resource.State/Watch': {
      requests: [{ ...hostname, apiVersion: 1 }],
      limit: 2,
      // The first answer confirms that the watch is established.
      answer: [{}, { event: [expect.objectContaining({ resource: shown.resource })] }],
    },
    'cosi.resource.State/Create': {
      requests: [{ resource: { metadata: hostname, spec: {} } }],
      answer: refused('PermissionDenied', 'not written through the API'),
    },
    'cosi.resource.State/Update': {
      requests: [{ newResource: { metadata: hostname, spec: {} } }],
      answer: refused('PermissionDenied', 'not written through the API'),
    },
    'cosi.resource.State/Destroy': { requests: [hostname], answer: refused('PermissionDenied', 'not written through the API') },
  }
}

/** Calls that end a node, or call another server, kept separately. */
export const calledApart: readonly string[] = [
  'machine.MachineService/Reboot',
  'machine.MachineService/Reset',
  'machine.MachineService/Shutdown',
  'securityapi.SecurityService/Certificate',
]
