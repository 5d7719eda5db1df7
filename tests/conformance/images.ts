/**
 * Stand-ins for the images that the conformance suite starts, made of the suite's own programs and Debian packages, in a
 * folder that `talosctl image cache-serve` serves. The names and versions are those of the suite
 * (`test/utils/image/manifest.go` of Kubernetes); `e2e.test --list-images` prints them.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Cached, cached, hashFile, hashOf } from '../../rootfs/build/cache.ts'
import { exclusive } from '../../rootfs/build/exclusive.ts'
import { goToolchain } from '../../rootfs/build/go.ts'
import { run } from '../../rootfs/build/run.ts'
import { blobFile, manifestFile } from '../../src/oci/image-cache.ts'
import { layerMediaType } from '../../src/oci/layer.ts'
import { parseReference } from '../../src/oci/reference.ts'
import { type ConformancePrograms, release } from './programs.ts'
import { busyboxShell } from './shell.ts'

/** The registry that all references of the suite name. */
export const imageRegistry = 'registry.k8s.io'

const debianRelease = 'bookworm'
const debianPackages = [
  ...['base-files', 'base-passwd', 'bash', 'busybox', 'coreutils', 'findutils', 'grep', 'hostname', 'libc-bin', 'procps', 'sed', 'tar'],
  ...['bind9-dnsutils', 'ca-certificates', 'curl', 'iproute2', 'iputils-ping', 'netcat-openbsd', 'nginx-light', 'perl-base', 'util-linux'],
]
const unneeded = ['usr/share/doc', 'usr/share/man', 'usr/share/info', 'usr/share/locale', 'usr/share/zoneinfo', 'var/lib/dpkg', 'var/cache']

/** Lays out the files of one layer in an empty folder. */
type Fill = (folder: string) => void | Promise<void>

interface TestImage {
  readonly name: string
  readonly tag: string
  readonly layers: readonly Layer[]
  readonly entrypoint?: readonly string[]
  readonly command?: readonly string[]
  readonly user?: string
}

interface Layer {
  readonly name: string
  readonly fill: Fill
}

function put(folder: string, path: string, source: string, mode = 0o755): void {
  const target = join(folder, path)
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(source, target)
  chmodSync(target, mode)
}

function write(folder: string, path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

function link(folder: string, path: string, target: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  symlinkSync(target, join(folder, path))
}

const programFolders = ['bin', 'sbin', 'usr/bin', 'usr/sbin']
const shells = ['sh', 'ash', 'bash', 'busybox']

/** The paths at which BusyBox wants its programs to be, from the root. */
async function applets(busybox: string): Promise<string[]> {
  return (await run([busybox, '--list-full'])).trim().split('\n')
}

/** Whether a path is there, also when it is a link that leads nowhere outside the image. */
function present(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

const debian: Layer = {
  name: 'debian',
  async fill(folder) {
    const sources = readdirSync('/etc/apt/sources.list.d').filter((file) => file.endsWith('.sources') || file.endsWith('.list'))
    const lists = [...sources.map((file) => join('/etc/apt/sources.list.d', file)), '/etc/apt/sources.list'].filter(existsSync)
    await run(['mmdebstrap', '--quiet', '--variant=extract', `--include=${debianPackages.join(',')}`, debianRelease, folder, ...lists])
    for (const path of [...unneeded, 'dev', 'proc', 'sys', 'bin/sh']) rmSync(join(folder, path), { recursive: true, force: true })
    // The packages' scripts, which would do this, are not run.
    for (const name of ['passwd', 'group']) put(folder, `etc/${name}`, join(folder, `usr/share/base-passwd/${name}.master`), 0o644)
    // bash keeps variables whose names are no identifiers, as the shell of the original images does; dash drops them.
    link(folder, 'bin/sh', 'bash')
    link(folder, 'bin/nc', 'nc.openbsd')
    // As in the original images, BusyBox is what no package has.
    for (const path of await applets(join(folder, 'bin/busybox'))) {
      const name = basename(path)
      if (!programFolders.some((each) => present(join(folder, each, name)))) link(folder, path, '/bin/busybox')
    }
    for (const path of ['dev', 'proc', 'sys', 'var/cache/nginx', 'var/log/nginx', 'var/lib/nginx'])
      mkdirSync(join(folder, path), { recursive: true })
  },
}

/** The programs of BusyBox under their names, with a shell of its own. */
const busybox = (shell: string): Layer => ({
  name: 'busybox',
  async fill(folder) {
    const program = join(dirname(folder), `.${debian.name}`, 'bin/busybox')
    // Where the original has them, and where the packages have their own.
    for (const path of new Set((await applets(program)).flatMap((each) => [each, `bin/${basename(each)}`])))
      if (!shells.includes(basename(path))) link(folder, path, '/bin/busybox')
    for (const path of ['bin/sh', 'bin/ash']) put(folder, path, shell)
  },
})

/** agnhost with what its image holds beside it; the operating system's name is the one that a test looks for in it. */
const agnhost = ({ folder: programs, kube, pause }: ConformancePrograms, source: string): Layer => ({
  name: 'agnhost',
  async fill(folder) {
    put(folder, 'agnhost', join(programs, 'agnhost'))
    link(folder, 'agnhost-2', 'agnhost')
    put(folder, 'coredns', kube)
    for (const name of ['localhost.crt', 'localhost.key']) put(folder, name, join(source, 'agnhost/porter', name), 0o644)
    mkdirSync(join(folder, 'uploads'))
    write(folder, 'etc/os-release', 'NAME="Alpine Linux"\nID=stand-in\nPRETTY_NAME="Alpine Linux (stand-in made of Debian packages)"\n')
    const users = ['root:x:0:0:root:/root:/bin/sh', 'nobody:x:65534:65534::/:/bin/sh', 'user-defined-in-image:x:1000:1000::/:/bin/sh']
    const groups = [
      'root:x:0:',
      'nogroup:x:65534:',
      'user-defined-in-image:x:1000:',
      'group-defined-in-image:x:50000:user-defined-in-image',
    ]
    write(folder, 'etc/passwd', `${users.join('\n')}\n`)
    write(folder, 'etc/group', `${groups.join('\n')}\n`)
    await fillRegistry(join(folder, 'var/registry'), pause, join(source, 'agnhost/fakeregistryserver/images.txt'))
  },
})

const suite = ({ folder: programs, kubectl }: ConformancePrograms): Layer => ({
  name: 'suite',
  fill(folder) {
    for (const name of ['e2e.test', 'ginkgo']) put(folder, `usr/local/bin/${name}`, join(programs, name))
    put(folder, 'usr/local/bin/kubeconformance', join(programs, 'go-runner'))
    put(folder, 'usr/local/bin/kubectl', kubectl)
    mkdirSync(join(folder, 'kubernetes/cluster'), { recursive: true })
  },
})

const program = (name: string, path: string, source: string): Layer => ({ name, fill: (folder) => put(folder, path, source) })

/** The images of the suite. */
function testImages(programs: ConformancePrograms, source: string, shell: string): TestImage[] {
  const { folder, kube, pause } = programs
  const base = [debian, agnhost(programs, source)]
  const host = { layers: base, entrypoint: ['/agnhost'], command: ['pause'] }
  const site = (name: string): Layer => ({
    name,
    fill(into) {
      for (const file of readdirSync(join(source, name, 'html'))) put(into, file, join(source, name, 'html', file), 0o644)
    },
  })
  const e2e = (name: string) => `e2e-test-images/${name}`
  return [
    { name: e2e('agnhost'), tag: '2.63.0', ...host },
    { name: e2e('agnhost'), tag: '2.55', ...host },
    { name: e2e('busybox'), tag: '1.37.0-1', layers: [debian, busybox(shell)], command: ['sh'] },
    { name: e2e('busybox'), tag: '1.36.1-1', layers: [debian, busybox(shell)], command: ['sh'] },
    {
      // The suite itself, for `talosctl conformance kubernetes`.
      name: 'conformance',
      tag: `v${release.version}`,
      layers: [debian, suite(programs)],
      entrypoint: ['kubeconformance'],
    },
    { name: e2e('glibc-dns-testing'), tag: '2.0.0', layers: [debian, program('coredns', 'coredns', kube)], command: ['bash'] },
    { name: e2e('kitten'), tag: '1.8', layers: [...base, site('kitten')], entrypoint: ['/agnhost'], command: ['test-webserver'] },
    { name: e2e('nautilus'), tag: '1.8', layers: [...base, site('nautilus')], entrypoint: ['/agnhost'], command: ['test-webserver'] },
    { name: e2e('nginx'), tag: '1.15-4', layers: [debian], command: ['nginx', '-g', 'daemon off;'] },
    { name: e2e('nginx'), tag: '1.27-0', layers: [debian], command: ['nginx', '-g', 'daemon off;'] },
    {
      name: e2e('nonewprivs'),
      tag: '1.4',
      layers: [debian, { name: 'nnp', fill: (into) => put(into, 'usr/local/bin/nnp', join(folder, 'nnp'), 0o6755) }],
      command: ['nnp'],
    },
    { name: e2e('nonroot'), tag: '1.5', layers: [debian], user: '1234', command: ['bash'] },
    { name: e2e('perl'), tag: '5.26', layers: [debian], command: ['perl', '-de0'] },
    {
      name: e2e('regression-issue-74839'),
      tag: '1.4',
      layers: [debian, program('regression', 'regression-issue-74839', join(folder, 'regression-issue-74839'))],
      entrypoint: ['/regression-issue-74839'],
    },
    {
      name: e2e('sample-apiserver'),
      tag: '1.29.2',
      layers: [program('sample-apiserver', 'sample-apiserver', join(folder, 'sample-apiserver'))],
      entrypoint: ['/sample-apiserver'],
    },
    { name: 'etcd', tag: '3.6.8-0', layers: [debian, program('etcd', 'usr/local/bin/etcd', kube)] },
    { name: 'pause', tag: '3.10.2', layers: [program('pause', 'pause', pause)], entrypoint: ['/pause'], user: '65535:65535' },
  ]
}

interface Blob {
  digest: string
  size: number
}

/** Packs a layer into a tar, which becomes a blob of the cache. */
async function pack(layer: Layer, cache: string): Promise<Blob> {
  const folder = join(cache, `.${layer.name}`)
  const archive = `${folder}.tar`
  mkdirSync(folder)
  await layer.fill(folder)
  await run(['tar', '--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '-cf', archive, '-C', folder, '.'])
  const { sha256, size } = await hashFile(archive)
  const digest = `sha256:${sha256}`
  if (!existsSync(join(cache, blobFile(digest)))) linkSync(archive, join(cache, blobFile(digest)))
  rmSync(archive)
  return { digest, size }
}

const manifestType = 'application/vnd.oci.image.manifest.v1+json'

function manifestOf(config: string, layers: readonly Blob[]): string {
  return JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: `sha256:${hashOf(config)}`, size: Buffer.byteLength(config) },
    layers: layers.map((layer) => ({ mediaType: layerMediaType, ...layer })),
  })
}

function configOf({ name, tag, entrypoint, command, user }: Omit<TestImage, 'layers'>, layers: readonly Blob[]): string {
  return JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    // The reference makes each configuration another one: the runtime knows an image by it.
    config: {
      Labels: { 'org.opencontainers.image.ref.name': `${name}:${tag}` },
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      ...(entrypoint && { Entrypoint: entrypoint }),
      ...(command && { Cmd: command }),
      ...(user && { User: user }),
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
  })
}

/** The folder from which agnhost's registry serves the images that images.txt names: all of them are pause. */
async function fillRegistry(folder: string, pause: string, list: string): Promise<void> {
  const layerFolder = `${folder}.layer`
  put(layerFolder, 'pause', pause)
  const archive = `${folder}.tar`
  await run(['tar', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '-cf', archive, '-C', layerFolder, 'pause'])
  const bytes = readFileSync(archive)
  const layer = { digest: `sha256:${hashOf(bytes)}`, size: bytes.length }
  const lines = readFileSync(list, 'utf8').split('\n')
  for (const line of lines) {
    const [name, , tag] = line.trim().split(/\s+/)
    if (!name || !tag || name.startsWith('#')) continue
    const config = configOf({ name, tag, entrypoint: ['/pause'] }, [layer])
    const manifest = manifestOf(config, [layer])
    const index = JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [
        {
          mediaType: manifestType,
          digest: `sha256:${hashOf(manifest)}`,
          size: manifest.length,
          platform: { os: 'linux', architecture: 'amd64' },
        },
      ],
    })
    const place = (kind: string, content: string | Buffer) => {
      const hex = hashOf(content)
      const path = join(folder, name, kind, 'sha256', hex.slice(0, 2), hex, 'data')
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
      return `sha256:${hex}`
    }
    place('blobs', bytes)
    place('blobs', config)
    place('manifests', manifest)
    write(folder, join(name, 'manifests', tag), `${place('manifests', index)}\n`)
  }
  rmSync(layerFolder, { recursive: true })
  rmSync(archive)
}

/** Makes the images, or finds them made before: a folder for `serveCache`. */
export async function conformanceImages(programs: ConformancePrograms): Promise<Cached> {
  const source = await sourceOf()
  const described = hashOf(readFileSync(import.meta.path))
  return exclusive('parts', async () => {
    const shell = join((await busyboxShell()).folder, 'sh')
    return cached('conformance-images', { programs, described, shell }, async (cache) => {
      mkdirSync(join(cache, 'blob'))
      const packed = new Map<string, Blob>()
      for (const image of testImages(programs, source, shell)) {
        const layers: Blob[] = []
        for (const layer of image.layers) {
          const blob = packed.get(layer.name) ?? (await pack(layer, cache))
          packed.set(layer.name, blob)
          layers.push(blob)
        }
        const config = configOf(image, layers)
        const manifest = manifestOf(config, layers)
        writeFileSync(join(cache, blobFile(`sha256:${hashOf(config)}`)), config)
        const { domain, repository } = parseReference(`${imageRegistry}/${image.name}`)
        for (const reference of [image.tag, `sha256:${hashOf(manifest)}`])
          write(cache, manifestFile(domain, repository, reference), manifest)
      }
      for (const name of packed.keys()) rmSync(join(cache, `.${name}`), { recursive: true })
    })
  })
}

/** The sources of the images in the module of Kubernetes. */
async function sourceOf(): Promise<string> {
  const command = ['go', 'list', '-m', '-f', '{{.Dir}}', 'k8s.io/kubernetes']
  const module = await run(command, { cwd: import.meta.dir, env: { ...process.env, GOTOOLCHAIN: goToolchain, GOWORK: 'off' } })
  return join(module.trim(), 'test/images')
}
