/**
 * A cluster on a machine that enforces the SELinux policy: it is bootstrapped, runs pods and takes an administrator's calls without a
 * denial, and a privileged pod that holds the whole machine reads neither the configuration nor a key of it.
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { releases } from '../../../rootfs/build/go-recipes.ts'
import { testCluster } from '../kubernetes/cluster.ts'

const minutes = 60_000
/** Without the audit service the kernel prints what it denies on the console. */
const parameters = ['security=selinux', 'selinux=1', 'enforcing=1', 'talos.auditd.disabled=1']
const { on, kubectl } = testCluster({
  story: 'selinux-cluster',
  patch: { machine: { install: { extraKernelArgs: parameters, grubUseUKICmdline: false } } },
})

/** What was denied: the domain, the type and the class of the object, and the permissions. */
const denials = () =>
  [...on.machine.console.matchAll(/avc: +denied +\{ ([^}]+) \}.*scontext=\S+:(\w+):s0 tcontext=\S+:(\w+):s0 tclass=(\w+)/g)].map(
    ([, permissions, from, to, kind]) => `${from} ${to} ${kind}: ${permissions}`,
  )

/** An etcd with every right over the machine, which finds the files of the machine below /host. */
const intruder = (name: string, ...args: string[]) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'kube-system' },
  spec: {
    restartPolicy: 'Never',
    hostPID: true,
    hostNetwork: true,
    containers: [
      {
        name: 'main',
        image: `registry.k8s.io/etcd:v${releases.etcd}`,
        command: ['/usr/local/bin/etcd', ...args],
        securityContext: { privileged: true },
        volumeMounts: [{ name: 'host', mountPath: '/host' }],
      },
    ],
    volumes: [{ name: 'host', hostPath: { path: '/' } }],
  },
})

/** What the pod printed until it ended. */
async function attempt(name: string, ...args: string[]): Promise<string> {
  writeFileSync(on.path(`${name}.json`), JSON.stringify(intruder(name, ...args)))
  await on.machine.until(`${name} is created`, () => kubectl('apply', '--filename', on.path(`${name}.json`)), 10 * minutes)
  return on.machine.until(
    `${name} ends`,
    async () => {
      const phase = await kubectl('--namespace', 'kube-system', 'get', 'pod', name, '--output', 'jsonpath={.status.phase}')
      if (phase !== 'Failed') throw new Error(`it is ${phase}`)
      return kubectl('--namespace', 'kube-system', 'logs', name)
    },
    15 * minutes,
  )
}

test(
  'it enforces, and each part runs in its domain',
  async () => {
    await on.machine.outputs(() => on.admin('get', 'securitystate', '--output', 'yaml'), /selinuxState: enabled, enforcing/, 10 * minutes)
    const processes = await on.machine.outputs(() => on.admin('processes'), /kube-apiserver/, 10 * minutes)
    for (const [domain, program] of [
      ['init_t', '/sbin/init'],
      ['apid_t', '/usr/bin/apid'],
      ['etcd_t', '/usr/local/bin/etcd'],
      ['kubelet_t', '/usr/local/bin/kubelet'],
      ['pod_t', 'kube-apiserver'],
      ['pod_t', '/coredns'],
    ])
      expect(processes).toMatch(new RegExp(`system_u:system_r:${domain}:s0 +${program}( |$)`, 'm'))
  },
  30 * minutes,
)

test(
  'what an administrator calls is answered',
  async () => {
    for (const call of [
      ['services'],
      ['logs', 'kubelet', '--tail', '5'],
      ['logs', 'etcd', '--tail', '5'],
      ['logs', 'apid', '--tail', '5'],
      ['dmesg'],
      ['etcd', 'members'],
      ['etcd', 'snapshot', on.path('snapshot.db')],
      ['containers'],
      ['containers', '--kubernetes'],
      ['stats', '--kubernetes'],
      ['image', 'list'],
      ['list', '/var'],
      ['usage', '/var/log'],
      ['netstat'],
      ['mounts'],
      ['memory'],
      ['get', 'members'],
      ['get', 'machineconfig', '--output', 'yaml'],
      ['support', '--output', on.path('support.zip')],
    ]) {
      const answered = async () => {
        const { code, stderr } = await on.admin(...call)
        if (code !== 0) throw new Error(stderr.trim())
        return true
      }
      await on.machine.until(call.join(' '), answered, 10 * minutes)
    }
    await on.machine.until(
      'a command in a pod',
      () => kubectl('--namespace', 'kube-system', 'exec', 'deploy/coredns', '--', '/coredns', '-version'),
      10 * minutes,
    )
    await on.machine.until('the log of a pod', () => kubectl('--namespace', 'kube-system', 'logs', 'deploy/coredns'), 10 * minutes)
    expect([...new Set(denials())]).toEqual([])
  },
  60 * minutes,
)

test(
  'a privileged pod with the whole machine reads neither its configuration nor its keys, and takes nothing of init',
  async () => {
    for (const [name, file] of [
      ['configuration', '/host/system/state/config.yaml'],
      ['key', '/host/system/secrets/etcd/server.key'],
      ['through-init', '/proc/1/root/system/state/config.yaml'],
    ] as const)
      expect(await attempt(name, '--config-file', file)).toContain(`open ${file}: permission denied`)
    expect(denials()).toContain('pod_t system_t dir: search')
    expect(denials().filter((each) => !/^pod_t (system_t dir|init_t (process|file|lnk_file)): /.test(each))).toEqual([])
  },
  60 * minutes,
)
