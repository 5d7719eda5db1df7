/**
 * What the kubelet and containerd need of the machine for a pod: a program that mounts volumes of NFS servers, and one that loads
 * AppArmor profiles. The pod is a static one of an image that every machine has, so no cluster is needed.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { releases } from '../../../rootfs/build/go-recipes.ts'
import { dist, forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'
import { asAdministrator, oneNode } from '../one-node.ts'

const folder = stateFolder('volumes-and-profiles')
const path = (name: string) => join(folder, name)
const minutes = 60_000
let machine: TestMachine
let server: Bun.Subprocess | undefined
const admin = (...args: string[]) => asAdministrator(folder, machine.port, ...args)

/** Serves a folder by NFS 4 on the loopback, at the port of that protocol: a volume of a pod cannot name another. */
function serve(): void {
  mkdirSync(path('export'), { recursive: true })
  mkdirSync(path('recovery'), { recursive: true })
  const core = `Protocols = 4; NFS_Port = 2049; Bind_addr = 127.0.0.1; Enable_NLM = false; Enable_RQUOTA = false;`
  const client = 'Access_Type = RW; Squash = No_Root_Squash; SecType = sys; PrivilegedPort = false;'
  writeFileSync(
    path('ganesha.conf'),
    `NFS_CORE_PARAM { ${core} }
NFSv4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = ${path('recovery')}; }
EXPORT { Export_Id = 1; Path = ${path('export')}; Pseudo = /export; ${client} Protocols = 4; Transports = TCP; FSAL { Name = VFS; } }
`,
  )
  const files = ['-L', path('ganesha.log'), '-f', path('ganesha.conf'), '-p', path('ganesha.pid')]
  server = Bun.spawn(['ganesha.nfsd', '-F', ...files], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
}

/** etcd that keeps its data on the server; it uses the ports of the node, since without a cluster there is no network of pods. */
const pod = () => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'writer', namespace: 'default' },
  spec: {
    hostNetwork: true,
    containers: [
      {
        name: 'main',
        image: `registry.k8s.io/etcd:v${releases.etcd}`,
        command: ['/usr/local/bin/etcd', '--data-dir=/data/etcd'],
        args: ['client', 'peer'].flatMap((kind, at) => [
          `--listen-${kind}-urls=http://127.0.0.1:${12379 + at}`,
          `--${kind === 'client' ? 'advertise-client' : 'initial-advertise-peer'}-urls=http://127.0.0.1:${12379 + at}`,
        ]),
        env: [{ name: 'ETCD_INITIAL_CLUSTER', value: 'default=http://127.0.0.1:12380' }],
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
        securityContext: { appArmorProfile: { type: 'RuntimeDefault' } },
      },
    ],
    volumes: [{ name: 'data', nfs: { server: '10.0.2.2', path: '/export' } }],
  },
})

beforeAll(async () => {
  console.log(`console: ${path('console.log')}`)
  serve()
  const file = path('disk.qcow2')
  copyFileSync(join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.qcow2'), file)
  machine = await TestMachine.start({
    console: path('console.log'),
    disks: [{ file, format: 'qcow2', bus: 'virtio' }],
    firmware: uefi(folder),
    memory: 3072,
    outside: true,
  })
}, 10 * minutes)
afterAll(async () => {
  await machine?.unplug()
  server?.kill()
  await server?.exited
  forgetState(folder)
})

test(
  'a pod writes to a volume of an NFS server',
  async () => {
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 10 * minutes)
    const patch = JSON.stringify({ machine: { pods: [pod()] } })
    await oneNode(folder, '--install-disk', '/dev/vda', '--config-patch', patch)
    await machine.takes(path('controlplane.yaml'), 10 * minutes)
    const written = async () => existsSync(path('export/etcd/member/snap/db'))
    await machine.until('etcd has made its database', written, 25 * minutes)
    expect(await machine.outputs(() => admin('read', '/proc/mounts'), /kubernetes\.io~nfs/, 5 * minutes)).toMatch(
      /^10\.0\.2\.2:\/export \S+kubernetes\.io~nfs\/data nfs4 rw/m,
    )
  },
  46 * minutes,
)

test(
  'AppArmor confines it by the profile of containerd, and none of the services of the machine',
  async () => {
    const lines = await machine.outputs(() => admin('containers', '--kubernetes'), /writer-\S+:main/, 10 * minutes)
    const pid = /writer-\S+:main\S*\s.*?\s(\d+)\s+CONTAINER_RUNNING/.exec(lines)?.[1]
    const profile = async (of: string) => (await admin('read', `/proc/${of}/attr/current`)).stdout.trim()
    expect(await profile(String(pid))).toBe('cri-containerd.apparmor.d (enforce)')
    expect(await profile('1')).toBe('unconfined')
  },
  11 * minutes,
)
