/** The image of the system in other engines: a control plane started by Debian's containerd, and by Debian's runc from a bundle. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../../rootfs/build/run.ts'
import { capabilities } from '../../../src/linux/process/capabilities.ts'
import { nodeImage } from '../../../src/release.ts'
import { finished } from '../../support/command-result.ts'
import { figure } from '../../support/figures.ts'
import { eventually, succeeded } from '../cluster.ts'
import { address, Engine } from './engine.ts'

const engine = new Engine()
const environment = join(engine.folder, 'environment')

beforeAll(async () => {
  const output = ['--output', engine.folder, '--with-cluster-discovery=false']
  succeeded(await engine.talosctl('gen', 'config', 'alone', `https://${address.node}:6443`, ...output))
  writeFileSync(environment, `USERDATA=${readFileSync(join(engine.folder, 'controlplane.yaml')).toString('base64')}\n`, { mode: 0o600 })
  await engine.start()
}, 180_000)
afterAll(() => engine.close(), 60_000)

const on = async (...args: string[]) => succeeded(await engine.talosctl('-e', address.node, '-n', address.node, ...args)).stdout

const services = ['apid', 'containerd', 'cri', 'etcd', 'kubelet', 'machined', 'registryd', 'trustd']

/** Waits for the API of a node that was just started, and for its services. */
async function works(engineName: string, start: number): Promise<void> {
  const version = await eventually(() => on('version'))
  figure('nested', `${engineName}: start to the first answer of the API`, `${((performance.now() - start) / 1000).toFixed(1)} s`)
  expect(version).toContain(`Tag:         ${nodeImage.tag}`)
  await eventually(() => on('bootstrap'))
  await eventually(async () => {
    const lines = (await on('services')).trim().split('\n').slice(1)
    const running = lines.map((line) => line.trim().split(/\s+/)).filter(([, , state, health]) => state === 'Running' && health === 'OK')
    expect(running.map(([, service]) => service).sort()).toEqual(services)
  }, 150)
  const pods = await eventually(async () => {
    const found = await on('containers', '--kubernetes')
    for (const name of ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'])
      if (!new RegExp(`${name}.*CONTAINER_RUNNING`).test(found)) throw new Error(`${name} does not run: ${found}`)
    return found
  }, 150)
  expect(pods).toContain('CONTAINER_RUNNING')
}

describe('containerd', () => {
  const reference = `docker.io/library/${nodeImage.repository}:${nodeImage.tag}`

  test('imports the archive under the name of the image', async () => {
    expect(succeeded(await engine.ctr('images', 'list', '--quiet')).stdout.trim()).toBe(reference)
  })

  test('runs a node whose API answers and whose services run, and ends it in good order', async () => {
    const mounts = engine.volumes('containerd').flatMap(({ target, source }) => {
      const options = source ? 'rbind:rw' : 'nosuid:nodev:mode=755'
      return ['--mount', `type=${source ? 'bind' : 'tmpfs'},src=${source ?? 'tmpfs'},dst=${target},options=${options}`]
    })
    const start = performance.now()
    const flags = ['--detach', '--privileged', '--env-file', environment, '--with-ns', `network:${engine.netns}`]
    succeeded(await engine.ctr('run', ...flags, ...mounts, reference, 'node'))
    await works('containerd', start)
    succeeded(await engine.ctr('tasks', 'kill', '--signal', 'SIGTERM', 'node'))
    await eventually(async () => expect(succeeded(await engine.ctr('tasks', 'list')).stdout).toMatch(/^node\s+\d+\s+STOPPED/m))
    const { stdout } = await engine.ctr('tasks', 'delete', 'node')
    expect(stdout).toBe('')
  }, 400_000)
})

test('runc runs a node from a bundle, which ends with exit code 0', async () => {
  const bundle = join(engine.folder, 'bundle')
  const layout = join(engine.folder, 'layout')
  for (const folder of [layout, join(bundle, 'rootfs')]) mkdirSync(folder, { recursive: true })
  await run(['tar', '-xf', join(import.meta.dir, '../../../dist', nodeImage.file), '-C', layout])
  const blob = (digest: string) => join(layout, 'blobs', digest.replace(':', '/'))
  const json = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
  const manifest = json(blob(json(join(layout, 'index.json')).manifests[0].digest))
  for (const { digest } of manifest.layers) await run(['tar', '-xzf', blob(digest), '-C', join(bundle, 'rootfs')])
  await run(['runc', 'spec', '--bundle', bundle])
  const path = join(bundle, 'config.json')
  writeFileSync(path, JSON.stringify(asNode(json(path), json(blob(manifest.config.digest)).config)), { mode: 0o600 })
  const start = performance.now()
  const console = Bun.file(join(engine.folder, 'console.log'))
  const root = ['--root', join(engine.folder, 'runc')]
  const child = Bun.spawn(['runc', ...root, 'run', '--bundle', bundle, 'node'], { stdin: 'ignore', stdout: console, stderr: console })
  await works('runc', start)
  const kill = Bun.spawn(['runc', ...root, 'kill', 'node', 'TERM'], { stdout: 'pipe', stderr: 'pipe' })
  succeeded(await finished(kill))
  expect(await child.exited).toBe(0)
}, 400_000)

/** What `runc spec` writes, with the image's entry point, all rights, and the volumes of a node. */
function asNode(spec: RuntimeSpec, { Entrypoint, Env }: { Entrypoint: string[]; Env: string[] }): RuntimeSpec {
  const all = capabilities().effective.map((name) => `CAP_${name.toUpperCase()}`)
  const volumes = engine.volumes('runc').map(({ target, source }) => ({
    destination: target,
    type: source ? 'bind' : 'tmpfs',
    source: source ?? 'tmpfs',
    options: source ? ['rbind', 'rw'] : ['nosuid', 'nodev', 'mode=755'],
  }))
  return {
    ...spec,
    hostname: 'alone',
    root: { path: 'rootfs', readonly: true },
    process: {
      ...spec.process,
      terminal: false,
      args: Entrypoint,
      env: [...Env, readFileSync(environment, 'utf8').trim()],
      capabilities: { bounding: all, effective: all, permitted: all },
      noNewPrivileges: false,
      rlimits: [],
    },
    mounts: [...spec.mounts.map((mount) => ({ ...mount, options: (mount.options ?? []).filter((option) => option !== 'ro') })), ...volumes],
    linux: {
      namespaces: [...spec.linux.namespaces.filter(({ type }) => type !== 'network'), { type: 'network', path: engine.netns }],
      resources: { devices: [{ allow: true, access: 'rwm' }] },
      devices: [{ path: '/dev/kmsg', type: 'c', major: 1, minor: 11, fileMode: 0o600, uid: 0, gid: 0 }],
    },
  }
}

/** The parts of config.json that change. */
interface RuntimeSpec {
  hostname: string
  root: { path: string; readonly: boolean }
  process: Record<string, unknown>
  mounts: { destination: string; type: string; source: string; options?: string[] }[]
  linux: { namespaces: { type: string; path?: string }[]; resources: object; devices?: object[] }
}
