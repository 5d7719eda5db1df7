/**
 * The official talosctl against a cluster of this system, and this system's beside it: what it needs of a node is there, and for the same
 * words both print the same. Building it takes minutes: `bun tests/interop/all.ts` runs this, the test command does not.
 */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { eventually, succeeded, TestCluster } from '../../cluster/cluster.ts'
import type { CommandResult } from '../../support/command-result.ts'
import { buildTalosctl } from '../client.ts'

setDefaultTimeout(300_000)

const cluster = new TestCluster('field')
let program: string
let node: string
let worker: string

beforeAll(async () => {
  program = await buildTalosctl()
  await cluster.create()
  node = cluster.nodes().find(({ role }) => role === 'controlplane')!.ip
  worker = cluster.nodes().find(({ role }) => role === 'worker')!.ip
}, 900_000)
afterAll(() => cluster.end())

/** Runs the field's client; it must never find this cluster's nodes older than itself. */
async function field(args: readonly string[], { on = node, env = {} as Record<string, string> } = {}): Promise<CommandResult> {
  const words = [program, ...args, ...(on ? ['--nodes', on] : [])]
  const child = Bun.spawn(words, {
    env: { ...process.env, ...cluster.env, ...env },
    cwd: cluster.home,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  expect(stderr).not.toContain('older than client')
  expect(stderr).not.toContain('goroutine')
  return { code, stdout, stderr }
}

const ours = (args: readonly string[], { on = node } = {}) => cluster.talosctl(...args, ...(on ? ['--nodes', on] : []))

describe('the machine configuration', () => {
  const sysctl = async () => (await ours(['read', '/proc/sys/net/ipv4/ip_default_ttl'])).stdout.trim()

  test('is patched', async () => {
    const patch = JSON.stringify({ machine: { sysctls: { 'net.ipv4.ip_default_ttl': '65' } } })
    const { stdout, stderr } = succeeded(await field(['patch', 'mc', '--mode', 'no-reboot', '--patch', patch]))
    expect(stdout + stderr).toContain(`patched MachineConfigs.config.talos.dev/v1alpha1 at the node ${node}`)
    await eventually(async () => expect(await sysctl()).toBe('65'), 20)
  })

  test('is edited', async () => {
    const editor = join(cluster.home, 'editor')
    writeFileSync(editor, '#!/bin/sh\nsed -i s/net.ipv4.ip_default_ttl:.*/net.ipv4.ip_default_ttl:\\ \\"66\\"/ "$1"\n')
    chmodSync(editor, 0o755)
    succeeded(await field(['edit', 'mc', '--mode', 'no-reboot'], { env: { EDITOR: editor } }))
    await eventually(async () => expect(await sysctl()).toBe('66'), 20)
  })

  test('is one string in every form, as ours shows it', async () => {
    for (const form of ['yaml', 'json', 'jsonpath={.spec}', 'jsonpath={.metadata.annotations}'])
      expect((await field(['get', 'mc', 'v1alpha1', '-o', form])).stdout).toBe((await ours(['get', 'mc', 'v1alpha1', '-o', form])).stdout)
    const shown = parse((await field(['get', 'mc', 'v1alpha1', '-o', 'yaml'])).stdout)
    expect([typeof shown.spec, shown.metadata.annotations]).toEqual(['string', { 'talos.dev/yaml-spec': 1 }])
  })
})

describe('sockets', () => {
  test('are listed with their programs', async () => {
    const { stdout } = succeeded(await field(['netstat', '--listening', '--tcp', '--programs']))
    expect(stdout).toMatch(/:2379 .* \d+\/etcd$/m)
  })

  test('are listed with their pods, and of one pod', async () => {
    const { items } = await cluster.objects('get', 'pods', '--namespace', 'kube-system', '--selector', 'k8s-app=kube-dns')
    const pod = `kube-system/${items.find(({ spec }) => cluster.nodes().some(({ name, ip }) => name === spec.nodeName && ip === node))!.metadata.name}`
    const { stdout } = succeeded(await field(['netstat', '--pods', '--all']))
    expect(stdout.split('\n').filter((line) => line.endsWith(`   ${pod}`)).length).toBeGreaterThan(0)
    const { stdout: alone } = succeeded(await field(['netstat', pod, '--all']))
    expect(alone).toMatch(/:53 /)
  })
})

describe('files', () => {
  test('are copied, and what is not there is an error', async () => {
    const target = join(cluster.home, 'copied')
    succeeded(await field(['copy', '/usr/lib/os-release', target]))
    expect(readdirSync(target)).toEqual(['os-release'])
    expect(readFileSync(join(target, 'os-release'), 'utf8')).toBe(succeeded(await field(['read', '/usr/lib/os-release'])).stdout)
    for (const words of [
      ['read', '/no/such'],
      ['copy', '/no/such', join(cluster.home, 'none')],
      ['list', '/no/such'],
    ]) {
      const { code, stdout, stderr } = await field(words)
      expect([code, stdout.replace(/^NODE +NAME\n$/, '')]).toEqual([1, ''])
      expect(stderr).toContain('no such file or directory')
    }
  })

  test('of several nodes are refused', async () => {
    for (const words of [
      ['read', '/etc/hosts'],
      ['copy', '/etc/hosts', '-'],
      ['kubeconfig', '-'],
    ]) {
      expect((await field(words, { on: `${node},${worker}` })).code).toBe(1)
      expect((await ours(words, { on: `${node},${worker}` })).code).toBe(1)
    }
  })
})

describe('both clients print the same:', () => {
  const same: string[][] = [
    ['list', '/etc/hosts'],
    ['list', '/usr'],
    ['list', '-l', '/usr/bin'],
    ['list', '-d', '2', '/etc'],
    ['list', '-r', '-t', 'l', '/etc/ssl'],
    ['usage', '/usr'],
    ['usage', '-d', '0', '/usr'],
    ['usage', '-d', '1', '/usr'],
    ['usage', '-a', '-H', '-d', '2', '/usr/share'],
    ['usage', '/no/such'],
    ['read', '/etc/os-release'],
    ['mounts'],
    ['containers'],
    ['containers', '-k'],
    ['etcd', 'members'],
    ['etcd', 'alarm', 'list'],
    ['get', 'members'],
    ['get', 'members', '-o', 'yaml'],
    ['get', 'members', '-o', 'json'],
    ['get', 'members', '-o', 'jsonpath={.spec}'],
    ['get', 'members', '-o', 'jsonpath={.metadata.version}'],
    ['get', 'members', '-o', 'jsonpath={.metadata.owner} {"x"}'],
    ['get', 'members', '-o', 'jsonpath={.spec.missing}'],
    ['get', 'hostname', 'hostname', '-o', 'jsonpath={.metadata.created}'],
    ['get', 'hostname', 'nowhere'],
    ['get', 'nodeaddress', '-o', 'yaml'],
    ['get', 'rd'],
    ['get', 'links'],
    ['config', 'contexts'],
    ['netstat', '-l', '-t', '-4'],
    ['service', 'nowhere'],
    ['logs', 'nowhere'],
    ['rollback'],
    ['image', 'list'],
    ['meta', 'write', '0x0a', 'x'],
    ['wipe', 'disk', 'sda'],
  ]
  // What they say of the same thing is their own, that they say it is not.
  const normal = (text: string) => text.replaceAll(/[ \t]+$/gm, '')
  test.each(same.map((words) => [words.join(' '), words] as const))('%s', async (_, words) => {
    const on = words[0] === 'config' ? '' : node
    const [theirs, own] = [await field(words, { on }), await ours(words, { on })]
    expect({ code: own.code, stdout: normal(own.stdout), silent: own.stderr === '' }).toEqual({
      code: theirs.code,
      stdout: normal(theirs.stdout),
      silent: theirs.stderr === '',
    })
  })

  test('inject serviceaccount', async () => {
    const file = join(cluster.home, 'pod.yaml')
    writeFileSync(file, 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n    - name: c\n      image: i\n')
    const documents = (text: string) => text.split(/^---$/m).map((each) => parse(each))
    const [theirs, own] = [
      await field(['inject', 'serviceaccount', '-f', file], { on: '' }),
      await ours(['inject', 'serviceaccount', '-f', file], { on: '' }),
    ]
    expect(documents(own.stdout)[1]).toEqual(documents(theirs.stdout)[1])
    // Neither takes what the other made for a thing to be done once more.
    writeFileSync(file, own.stdout)
    expect(documents((await field(['inject', 'serviceaccount', '-f', file], { on: '' })).stdout)).toEqual(documents(theirs.stdout))
  })
})

describe('rights', () => {
  test('of a reader do not reach secrets, and the refusal reports it', async () => {
    const reader = join(cluster.home, 'reader')
    succeeded(await field(['config', 'new', reader, '--roles', 'os:reader']))
    const { code, stderr } = await field(['get', 'mc', '--talosconfig', reader])
    expect([code, stderr]).toEqual([1, expect.stringContaining('not authorized')])
  })

  test('of another cluster are none: the TLS alert arrives each time', async () => {
    const folder = join(cluster.home, 'other')
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    succeeded(await field(['gen', 'config', 'other', 'https://1.2.3.4:6443', '--output-dir', folder], { on: '' }))
    const config = parse(readFileSync(join(folder, 'talosconfig'), 'utf8'))
    const right = parse(readFileSync(cluster.env.TALOSCONFIG!, 'utf8'))
    const file = join(folder, 'mixed')
    config.contexts.other.ca = right.contexts[right.context].ca
    config.contexts.other.endpoints = [node]
    writeFileSync(file, JSON.stringify(config))
    for (let time = 0; time < 10; time++) {
      const { code, stderr } = await field(['version', '--talosconfig', file])
      expect([code, stderr]).toEqual([1, expect.stringContaining('unknown certificate authority')])
    }
  })
})
