/**
 * What pods of an installed machine may take of its disk and its memory: project quotas on EPHEMERAL, limits of ephemeral storage,
 * swap, and the out-of-memory handler under real pressure. It continues on the machine of the story kube-system when ICHOR_VM_STATE
 * keeps that.
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { imageRegistry } from '../../conformance/images.ts'
import { testCluster, testImages } from './cluster.ts'

const minutes = 60_000
const mebibyte = 1 << 20
const swapSize = 1024
const { on, kubectl } = testCluster({ disks: { swap: 2 * swapSize } })
testImages()

/** A pod of one container, `main`, that runs this Perl script. */
const podOf = (name: string, script: string, container: object = {}, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 0,
    containers: [
      { name: 'main', image: `${imageRegistry}/e2e-test-images/perl:5.26`, command: ['perl', '-e', `$| = 1; ${script}`], ...container },
    ],
    ...spec,
  },
})

/** Creates a pod, in place of one of an earlier run. */
async function create(pod: ReturnType<typeof podOf>): Promise<void> {
  const { name } = pod.metadata
  writeFileSync(on.path(`${name}.json`), JSON.stringify(pod))
  await retried(`${name} is created`, async () => {
    await kubectl('delete', 'pod', name, '--ignore-not-found', '--force', '--grace-period=0')
    return kubectl('create', '--filename', on.path(`${name}.json`))
  })
}

/** An emulated API server may not answer in time. */
const retried = <T>(what: string, ask: () => Promise<T | false>) => on.machine.until(what, ask, 15 * minutes)

const logs = (name: string, what: RegExp) =>
  retried(`${name} prints ${what}`, async () => {
    const text = await kubectl('logs', name)
    if (!what.test(text)) throw new Error(text)
    return text
  })

interface PodStatus {
  phase?: string
  reason?: string
  message?: string
  containerStatuses?: { restartCount: number; state: { terminated?: { exitCode: number; reason: string } } }[]
}

/** Waits until a pod has failed, and returns its status. */
const failed = (name: string) =>
  retried(`${name} fails`, async () => {
    const { status } = JSON.parse(await kubectl('get', 'pod', name, '--output', 'json')) as { status: PodStatus }
    if (status.phase !== 'Failed') throw new Error(JSON.stringify(status))
    return status
  })

/** Writes this many mebibytes into the open file `$f`. */
const fill = (size: number) => `for (1..${size}) { syswrite($f, chr(65 + $_ % 26) x ${mebibyte}) == ${mebibyte} or die "write: $!" }`
/** Holds this many mebibytes, none of them shared. */
const hold = (size: number) => `for (1..${size}) { push @held, chr(65 + $_ % 26) x ${mebibyte} }`
const wait = 'sleep 1 while 1;'

test(
  'EPHEMERAL counts space by project; a folder of a pod has a project, whose quota counts a deleted file that is open',
  async () => {
    await on.machine.outputs(() => on.admin('read', '/proc/mounts'), /^\S+ \/var xfs \S*prjquota/m, 10 * minutes)
    // FS_IOC_FSGETXATTR fills struct fsxattr, whose fourth number is the project.
    const project =
      'my $b = "\\0" x 28; open(my $d, "<", "/data") or die; ioctl($d, 0x801c581f, $b) or die "ioctl: $!"; print "project ", (unpack("L4", $b))[3], "\\n";'
    const write = `sleep 1 until -e "/data/go"; open(my $f, ">", "/data/file") or die; unlink "/data/file"; ${fill(96)} print "written\\n";`
    await create(
      podOf(
        'quota',
        `${project} ${write} ${wait}`,
        { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
        // The token of its service account would be on a tmpfs, which Linux has mapped to other owners since 6.3 only.
        { hostUsers: false, automountServiceAccountToken: false, volumes: [{ name: 'data', emptyDir: { sizeLimit: '64Mi' } }] },
      ),
    )
    expect(Number(/project (\d+)/.exec(await logs('quota', /project \d+/))?.[1])).toBeGreaterThan(0)
    await retried('the order to write', () => kubectl('exec', 'quota', '--', 'touch', '/data/go'))
    const { reason, message } = await failed('quota')
    expect(`${reason}: ${message}`).toMatch(/^Evicted: .*EmptyDir volume "data" exceeds the limit "64Mi"/)
  },
  45 * minutes,
)

test(
  'a pod over its limit of ephemeral storage is evicted',
  async () => {
    const limits = { 'ephemeral-storage': '32Mi' }
    await create(podOf('disk', `open(my $f, ">", "/file") or die; ${fill(64)} ${wait}`, { resources: { limits } }))
    const { reason, message } = await failed('disk')
    expect(`${reason}: ${message}`).toMatch(/^Evicted: .*limit of containers 32Mi/)
    await retried('the node is ready', async () => /\sReady\s/.test(await kubectl('get', 'nodes', '--no-headers')))
  },
  30 * minutes,
)

test(
  'a burstable pod swaps within its share of a swap volume, others do not swap',
  async () => {
    const volume = { apiVersion: 'v1alpha1', kind: 'SwapVolumeConfig', name: 'swap' }
    const size = `${swapSize}MiB`
    const provisioning = { diskSelector: { match: 'disk.serial == "swap"' }, minSize: size, maxSize: size }
    const kubelet = { machine: { kubelet: { extraConfig: { memorySwap: { swapBehavior: 'LimitedSwap' } } } } }
    const patched = (patch: object) =>
      on.machine.outputs(
        () => on.admin('patch', 'machineconfig', '--mode', 'no-reboot', '--patch', JSON.stringify(patch)),
        /^/,
        10 * minutes,
      )
    await patched({ ...volume, provisioning })
    await on.machine.outputs(() => on.admin('get', 'swap'), /vdb/, 15 * minutes)
    await patched(kubelet)
    const capacity = async () => (await kubectl('get', 'nodes', '--output', 'jsonpath={.items[0].status.nodeInfo.swap.capacity}')) || false
    const bytes = Number(await retried('the kubelet knows the swap area', capacity))
    expect(bytes).toBeGreaterThan((swapSize - 1) * mebibyte)

    const figures = 'for my $n ("max", "current") { open(my $g, "<", "/sys/fs/cgroup/memory.swap.$n") or die; print "$n ", <$g> }'
    const resources = { requests: { memory: '256Mi' }, limits: { memory: '257Mi' } }
    await create(podOf('swapping', `${hold(280)} ${figures} ${wait}`, { resources }))
    await create(podOf('plain', `${figures} ${wait}`))
    const [, most = '', used = ''] = /max (\d+)\ncurrent (\d+)/.exec(await logs('swapping', /current \d+/)) ?? []
    expect(Number(used)).toBeGreaterThan(16 * mebibyte)
    expect(Number(most)).toBeGreaterThanOrEqual(Number(used))
    // The share of the area is that of the request in the memory of the node, which is at most 4 GiB.
    expect(Number(most) / bytes).toBeGreaterThan(256 / 4096)
    expect(Number(most) / bytes).toBeLessThan(256 / 2048)
    expect(await logs('plain', /current \d+/)).toContain('max 0\ncurrent 0\n')
    await kubectl('delete', 'pod', 'swapping', 'plain', '--force', '--grace-period=0')
  },
  60 * minutes,
)

test(
  'a pod that takes all memory is killed by the out-of-memory handler; the services and the other pods stay',
  async () => {
    const earlier = (await on.admin('get', 'oomactions', '-o', 'yaml')).stdout.match(/^ {4}score:/gm)?.length ?? 0
    const system = () => retried('the pods', () => kubectl('--namespace', 'kube-system', 'get', 'pods', '--output', endsOf))
    const killed = (ends: string) => ends.match(/ 137\b/g)?.length ?? 0
    const before = await system()
    // Slow enough for the kernel's averages to rise before it has to choose a process by itself.
    await create(podOf('greedy', `for (1..8192) { ${hold(4)} select(undef, undef, undef, 0.05) }`))
    const actions = await on.machine.until(
      'an action of the handler',
      async () => {
        const { code, stdout, stderr } = await on.admin('get', 'oomactions', '-o', 'yaml')
        if (code !== 0) throw new Error(stderr)
        return (stdout.match(/^ {4}score:/gm)?.length ?? 0) > earlier && stdout
      },
      20 * minutes,
    )
    expect(actions).toMatch(/perl -e/)
    expect(actions).toMatch(/triggerContext: .*memory_full_avg10/)
    const { containerStatuses = [] } = await failed('greedy')
    expect(containerStatuses[0]?.state.terminated?.exitCode).toBe(137)
    expect(on.machine.console).toMatch(/cgroup killed because memory is short.*cgroup=kubepods\/besteffort\/pod/)
    await on.machine.outputs(() => on.admin('services'), /kubelet\s+Running\s+OK/, 10 * minutes)
    // An emulated machine that is short of memory answers late, so a leader may lose its lease and restart by itself, with another code.
    expect(killed(await system())).toBe(killed(before))
    const ready = () => kubectl('--namespace', 'kube-system', 'get', 'pods', '--output', readyOf)
    await on.machine.until('every pod is ready', async () => /^(true ?)+$/.test(await ready()), 15 * minutes)
  },
  45 * minutes,
)

/** How each container ended last. */
const endsOf = 'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].lastState.terminated.exitCode}{"\\n"}{end}'
/** Whether each container is ready. */
const readyOf = 'jsonpath={.items[*].status.containerStatuses[*].ready}'
