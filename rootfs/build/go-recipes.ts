/** The Go programs of the root file system. Versions of modules are in each folder's go.mod; the linker flags repeat them. */
import { readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { GoRecipe, GoTool } from './go.ts'

/** The releases that make up the root file system. */
export const releases = {
  kubernetes: '1.36.3',
  etcd: '3.6.16',
  coredns: '1.14.7',
  flannel: '0.28.4',
  containerd: '2.2.9',
  runc: '1.5.2',
  cni: '1.9.1',
  pause: '3.10.1',
} as const

const [major, minor] = releases.kubernetes.split('.')

/** kubelet, the control plane, kube-proxy, etcd, CoreDNS and flannel in one file. */
export const kube: GoRecipe = {
  name: 'kube',
  module: 'kube',
  programs: { kube: '.' },
  tags: ['providerless'],
  settings: {
    'k8s.io/component-base/version.gitVersion': `v${releases.kubernetes}`,
    'k8s.io/component-base/version.gitMajor': major!,
    'k8s.io/component-base/version.gitMinor': minor!,
    'k8s.io/component-base/version.gitTreeState': 'clean',
    'k8s.io/client-go/pkg/version.gitVersion': `v${releases.kubernetes}`,
    'k8s.io/client-go/pkg/version.gitMajor': major!,
    'k8s.io/client-go/pkg/version.gitMinor': minor!,
    'k8s.io/client-go/pkg/version.gitTreeState': 'clean',
    'go.etcd.io/etcd/api/v3/version.GitSHA': `v${releases.etcd}`,
    'main.flannelVersion': `v${releases.flannel}`,
  },
}

/** kubectl for the machine that builds; not in the image. */
export const kubectl: GoRecipe = { ...kube, name: 'kubectl', programs: { kubectl: './kubectl' } }

const containerdModule = 'github.com/containerd/containerd/v2'

/** The container runtime and, under another name, what stays with each pod. */
export const containerd: GoRecipe = {
  name: 'containerd',
  module: 'containerd',
  programs: { containerd: '.' },
  // Snapshotters that no configuration here can choose, and an exporter of traces that is never set up.
  tags: ['no_btrfs', 'no_devmapper', 'no_tracing', 'no_zfs'],
  settings: { [`${containerdModule}/version.Version`]: releases.containerd },
}

/** containerd's own client, for the tests; not in the image. */
export const ctr: GoRecipe = { ...containerd, name: 'ctr', programs: { ctr: `${containerdModule}/cmd/ctr` } }

/** The program that makes containers; static, since the provisioner also runs it on the host. */
export const runc: GoRecipe = {
  name: 'runc',
  module: 'runc',
  programs: { runc: 'github.com/opencontainers/runc' },
  tags: ['seccomp', 'netgo', 'osusergo'],
  c: { packages: ['libseccomp-dev'] },
}

const plugins = {
  bridge: 'main/bridge',
  firewall: 'meta/firewall',
  'host-local': 'ipam/host-local',
  loopback: 'main/loopback',
  portmap: 'meta/portmap',
}

/** Names of the CNI plugins, each a link to the one file that holds them. */
export const cniPlugins: readonly string[] = Object.keys(plugins).sort()

/** The CNI plugins in one file: their packages are programs, so each is made a package with a Main of its own first. */
export const cni: GoRecipe = {
  name: 'cni',
  module: 'cni',
  programs: { cni: '.' },
  settings: { 'github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion': `v${releases.cni}` },
  prepare: { version: 1, apply: joinPlugins },
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
