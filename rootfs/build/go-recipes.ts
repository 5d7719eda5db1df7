/** The Go programs of the root file system. Versions of modules are in each folder's go.mod; the linker flags repeat them. */
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { GoRecipe, GoTool } from './go.ts'
import type { KubernetesRelease } from './kubernetes.ts'

/** Our own sources, which every release is linked with. */
const kubeSources = 'kube'

/** The releases that make up the root file system, beside Kubernetes and CoreDNS (kubernetes.ts). They are the same for each minor of those. */
export const releases = {
  etcd: '3.6.16',
  flannel: '0.28.4',
  containerd: '2.2.9',
  runc: '1.5.2',
  cni: '1.9.1',
  pause: '3.10.1',
  guestinfo: '1.0.0',
} as const

/** The names that the file of Kubernetes answers to, as its source lists them. */
export function kubeNames(): string[] {
  const source = readFileSync(join(import.meta.dir, '..', kubeSources, 'main.go'), 'utf8')
  const [, table = ''] = /^var programs = map\[string\]func\(\)\{\n(.*?)^\}/ms.exec(source) ?? []
  const names = [...table.matchAll(/^\t"([a-z-]+)":/gm)].map(([, name = '']) => name)
  if (names.length === 0) throw new Error(`rootfs/${kubeSources}/main.go lists no programs`)
  return names.sort()
}

/** kubelet, the control plane, kube-proxy, etcd, CoreDNS and flannel in one file. */
export function kube({ version, module }: KubernetesRelease): GoRecipe {
  const [major = '', minor = ''] = version.split('.')
  const stamp = (name: string) => ({
    [`${name}.gitVersion`]: `v${version}`,
    [`${name}.gitMajor`]: major,
    [`${name}.gitMinor`]: minor,
    [`${name}.gitTreeState`]: 'clean',
  })
  return {
    name: 'kube',
    version,
    image: { path: '/usr/bin/kube', links: kubeNames() },
    module,
    ...(module !== kubeSources && { sources: kubeSources }),
    programs: { kube: '.' },
    tags: ['providerless'],
    settings: {
      ...stamp('k8s.io/component-base/version'),
      ...stamp('k8s.io/client-go/pkg/version'),
      'go.etcd.io/etcd/api/v3/version.GitSHA': `v${releases.etcd}`,
      'main.flannelVersion': `v${releases.flannel}`,
    },
  }
}

/** kubectl for the machine that builds; not in the image. */
export const kubectl = (release: KubernetesRelease): GoRecipe => ({
  ...kube(release),
  name: 'kubectl',
  image: undefined,
  programs: { kubectl: './kubectl' },
})

const containerdModule = 'github.com/containerd/containerd/v2'

/** The container runtime and, under another name, what stays with each pod. */
export const containerd: GoRecipe = {
  name: 'containerd',
  version: releases.containerd,
  image: { path: '/usr/bin/containerd', hardLinks: ['containerd-shim-runc-v2'] },
  module: 'containerd',
  programs: { containerd: '.' },
  // Snapshotters that no configuration here can choose, and an exporter of traces that is never set up.
  tags: ['no_btrfs', 'no_devmapper', 'no_tracing', 'no_zfs'],
  settings: { [`${containerdModule}/version.Version`]: releases.containerd },
  prepare: { version: 2, apply: changeContainerd },
}

/** containerd's own client, for the tests; not in the image. */
export const ctr: GoRecipe = { ...containerd, name: 'ctr', image: undefined, programs: { ctr: `${containerdModule}/cmd/ctr` } }

/** The program that makes containers; static, since the provisioner also runs it on the host. */
export const runc: GoRecipe = {
  name: 'runc',
  version: releases.runc,
  image: { path: '/usr/bin/runc' },
  module: 'runc',
  programs: { runc: 'github.com/opencontainers/runc' },
  tags: ['seccomp', 'netgo', 'osusergo'],
  c: { packages: ['libseccomp-dev'] },
  prepare: { version: 1, apply: labelContainers },
}

const plugins = {
  bridge: 'main/bridge',
  firewall: 'meta/firewall',
  'host-local': 'ipam/host-local',
  loopback: 'main/loopback',
  portmap: 'meta/portmap',
}

/** The CNI plugins in one file: their packages are programs, so each is made a package with a Main of its own first. */
export const cni: GoRecipe = {
  name: 'cni',
  version: releases.cni,
  image: { path: '/usr/libexec/cni/cni', links: Object.keys(plugins).sort() },
  module: 'cni',
  programs: { cni: '.' },
  settings: { 'github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion': `v${releases.cni}` },
  prepare: { version: 1, apply: joinPlugins },
}

/** Every Go program of the root file system. */
export const goPrograms = (kubernetes: KubernetesRelease): readonly GoRecipe[] => [kube(kubernetes), containerd, runc, cni]

async function changeContainerd(folder: string, go: GoTool): Promise<void> {
  await go('mod', 'vendor')
  const module = join(folder, 'vendor', containerdModule)
  await reportUnreachableHosts(module)
  await verifyPulls(folder, module)
}

/**
 * Pulls through containerd's transfer service go through its image verifiers, those for pods too, but for settings that only the
 * older way of pulling has (credentials in the configuration among them), and without the pod's credentials. Here both ways go through them,
 * with the credentials of the pull.
 */
async function verifyPulls(folder: string, module: string): Promise<void> {
  await rename(join(folder, 'imageverifier/machine.go'), join(module, 'pkg/imageverifier/machine.go'))
  const file = join(module, 'internal/cri/server/images/image_pull.go')
  await replaceOnce(file, [
    [/^import \(\n/m, `import (\n\t"${containerdModule}/pkg/imageverifier"\n`],
    [
      /^\tvar image containerd\.Image\n(?=\tif c\.config\.UseLocalImagePull)/m,
      '\tctx = imageverifier.WithCredentials(ctx, credentials)\n$&',
    ],
    [/(?<=containerd\.WithResolver\()resolver(?=\))/, 'imageverifier.VerifyResolved(resolver)'],
  ])
}

/** Containers without an SELinux label get that of pods (rootfs/selinux): the daemon of pods gives privileged ones none. */
async function labelContainers(folder: string, go: GoTool): Promise<void> {
  await go('mod', 'vendor')
  const module = join(folder, 'vendor/github.com/opencontainers/runc/libcontainer/specconv')
  await rename(join(folder, 'specconv/label.go'), join(module, 'label.go'))
  await replaceOnce(join(module, 'spec_linux.go'), [
    [/(?<=^\t\tconfig\.ProcessLabel = )(spec\.Process\.SelinuxLabel)$/m, 'processLabel($1)'],
  ])
}

/** Replaces each pattern where it matches; a pattern without exactly one match is an error. */
async function replaceOnce(file: string, changes: readonly (readonly [lines: RegExp, by: string])[]): Promise<void> {
  let text = await readFile(file, 'utf8')
  for (const [lines, by] of changes) {
    if (text.match(new RegExp(lines, `${lines.flags}g`))?.length !== 1)
      throw new Error(`"${file}" is not as in the release before, where ${lines} matches once: compare them`)
    text = text.replace(lines, by)
  }
  await writeFile(file, text)
}

/**
 * containerd requests an image from several hosts and reports one error. As published, a host that does not have the image outranks
 * one that could not be reached: registryd, which comes first, has few images, so a registry whose certificate is not trusted would
 * be reported as "not found". The two ranks are exchanged: an image is only not found when every host answered so.
 */
async function reportUnreachableHosts(module: string): Promise<void> {
  await replaceOnce(join(module, 'core/remotes/docker/resolver.go'), [
    [/(if firstErrPriority < )1( \{\s+firstErr = err\s+firstErrPriority = )1$/m, '$12$22'],
    [/(if firstErrPriority < )2( \{\s+firstErr = fmt\.Errorf\("%s: %w", ref, errdefs\.ErrNotFound\)\s+firstErrPriority = )2$/m, '$11$21'],
  ])
}

async function joinPlugins(folder: string, go: GoTool): Promise<void> {
  await go('mod', 'download', 'github.com/containernetworking/plugins')
  const source = (await go('list', '-m', '-f', '{{.Dir}}', 'github.com/containernetworking/plugins')).trim()
  for (const [name, path] of Object.entries(plugins)) {
    const word = name.replace('-', '')
    await mkdir(join(folder, word))
    for (const file of readdirSync(join(source, 'plugins', path)).filter((each) => each.endsWith('.go') && !each.endsWith('_test.go'))) {
      const text = await readFile(join(source, 'plugins', path, file), 'utf8')
      await writeFile(
        join(folder, word, file),
        text.replace(/^package main$/m, `package ${word}`).replace(/^func main\(\)/m, 'func Main()'),
      )
    }
  }
  const words = Object.keys(plugins).map((name) => [name, name.replace('-', '')] as const)
  const lines = [
    '// Written by the build: every plugin under the name it is called by.',
    'package main',
    'import (\n"fmt"\n"os"\n"path/filepath"',
    ...words.map(([, word]) => `${word} "ichor.invalid/cni/${word}"`),
    ')',
    'var plugins = map[string]func(){',
    ...words.map(([name, word]) => `"${name}": ${word}.Main,`),
    '}',
    'func main() {',
    'name := filepath.Base(os.Args[0])',
    'plugin, known := plugins[name]',
    'if !known {',
    `fmt.Fprintf(os.Stderr, "cni: no plugin %q here: there are ${words.map(([name]) => name).join(' ')}\\n", name)`,
    'os.Exit(2)',
    '}',
    'plugin()',
    '}',
  ]
  await writeFile(join(folder, 'main.go'), `${lines.join('\n')}\n`)
}
