import { describe, expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import type { FilterChain, FilterRule } from '../../../../src/linux/net/nftables.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { applyFirewall, configFirewall, type PacketFilter } from '../../../../src/os/network/controllers/firewall.ts'
import { nftScript } from '../../../../src/os/network/firewall/nft-script.ts'
import { NfTablesChain } from '../../../../src/os/network/resources/nf-tables-chain.ts'
import { NodeAddress } from '../../../../src/os/network/resources/node-address.ts'

const chain = (...rules: object[]) =>
  new Map([['x', { type: 'filter', hook: 'input', priority: 'mangle', policy: 'drop', rules } as never]])
const lines = (...rules: object[]) =>
  nftScript(chain(...rules))
    .text.split('\n')
    .slice(5, -3)
    .map((line) => line.replace(/ comment "[0-9a-f]{12} \d+ of \d+"$/, '').trim())

describe('a rule in nft syntax', () => {
  test('addresses are split by family, overlapping ones are merged', () => {
    expect(
      lines({
        matchSourceAddress: { includeSubnets: ['10.0.0.0/8', '10.1.0.0/16', 'fd00::/8'], excludeSubnets: ['10.2.0.0/16'] },
        verdict: 'accept',
      }),
    ).toEqual(['ip saddr { 10.0.0.0/8 } ip saddr != { 10.2.0.0/16 } accept', 'ip6 saddr { fd00::/8 } accept'])
  })

  test('an inverted set matches its exceptions and every address of other families', () => {
    expect(
      lines({ matchSourceAddress: { includeSubnets: ['10.0.0.0/8'], excludeSubnets: ['10.2.0.0/16'], invert: true }, verdict: 'drop' }),
    ).toEqual(['ip saddr != { 10.0.0.0/8 } drop', 'ip saddr { 10.2.0.0/16 } drop', 'meta nfproto ipv6 drop'])
  })

  test('ports, states, links, limits, marks', () => {
    expect(
      lines(
        { matchIIfName: { interfaceName: ['lo', 'kubespan'], operator: '==' }, verdict: 'accept' },
        {
          matchLayer4: {
            protocol: 'tcp',
            matchDestinationPort: {
              ranges: [
                { lo: 22, hi: 22 },
                { lo: 80, hi: 90 },
              ],
            },
          },
          verdict: 'accept',
        },
        { matchLayer4: { protocol: 'icmp' }, matchLimit: { packetRatePerSecond: 5 }, verdict: 'accept' },
        { matchConntrackState: { states: ['established', 'related'] }, anonymousCounter: true },
        { matchMark: { mask: 0x60, value: 0x20 }, setMark: { mask: 0xffffff9f, xor: 0x40 } },
      ),
    ).toEqual([
      'iifname { "lo", "kubespan" } accept',
      'tcp dport { 22, 80-90 } accept',
      'meta l4proto 1 limit rate 5/second accept',
      'ct state { established, related } counter',
      'meta mark and 0x60 == 0x20 meta mark set meta mark and 0xffffff9f xor 0x40',
    ])
  })

  test('invalid tokens never reach the script', () => {
    expect(() => lines({ matchIIfName: { interfaceName: ['a" } accept #'], operator: '==' } })).toThrow('not a link name')
    expect(() => lines({ matchLayer4: { protocol: 'tcp; flush ruleset', matchDestinationPort: { ranges: [{ lo: 1, hi: 1 }] } } })).toThrow(
      'not a token',
    )
  })
})

const head = 'version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n'
const block = '---\napiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block\n'
const rule = `---
apiVersion: v1alpha1
kind: NetworkRuleConfig
name: apid
portSelector: {ports: [50000, 30000-30010], protocol: tcp}
ingress: [{subnet: 10.5.0.0/24, except: 10.5.0.9/32}]
`

/** A kernel that understands of scripts what ours say: chains, and rules by their comments. */
function kernel() {
  const scripts: string[] = []
  const hooks = ['prerouting', 'input', 'forward', 'output', 'postrouting']
  const state = { chains: [] as FilterChain[], rules: [] as FilterRule[] }
  const changes: (() => void)[] = []
  const changed = () => {
    for (const notify of changes.splice(0)) notify()
  }
  const take = (script: string) => {
    scripts.push(script)
    state.chains = []
    state.rules = []
    for (const [, name = '', type, hook = '', priority, policy, body = ''] of script.matchAll(
      /chain (\S+) \{\s+type (\S+) hook (\S+) priority (-?\d+); policy (\S+);([^}]*(?:\{[^}]*\}[^}]*)*?)\n {2}\}/g,
    )) {
      state.chains.push({
        table: 'talos',
        name,
        type,
        hook: hooks.indexOf(hook),
        priority: Number(priority),
        policy: policy === 'accept' ? 1 : 0,
      })
      for (const [, comment = ''] of body.matchAll(/comment "([^"]*)"/g)) state.rules.push({ table: 'talos', chain: name, comment })
    }
    changed()
  }
  const filter: PacketFilter = {
    run: async (script) => take(script),
    look: () => state,
    async *watch(signal) {
      while (!signal.aborted) {
        yield
        await new Promise<void>((resolve) => {
          changes.push(resolve)
          signal.addEventListener('abort', () => resolve())
        })
      }
    },
  }
  return { scripts, state, changed, filter }
}

function machine() {
  const { filter, ...rest } = kernel()
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  os.register(configFirewall, applyFirewall(filter))
  os.start()
  store.put(NodeAddress, 'routed-no-k8s', { addresses: ['10.5.0.2/24'], sortAlgorithm: 'v1' })
  return { ...rest, store, os }
}

test('the table is written once per change, removed with the last document, and never created without one', async () => {
  const { store, os, scripts } = machine()
  store.put(MachineConfig, 'v1alpha1', head)
  await os.settled()
  expect(scripts).toEqual([])
  store.put(MachineConfig, 'v1alpha1', head + block + rule)
  await os.settled()
  expect(scripts).toHaveLength(1)
  expect(scripts[0]).toContain('hook input priority -150; policy drop;')
  expect(scripts[0]).toContain('ip saddr { 10.5.0.0/24 } ip saddr != { 10.5.0.9/32 } tcp dport { 50000, 30000-30010 } accept')
  expect(scripts[0]).toContain('ip daddr { 10.5.0.2/32 } meta l4proto 6 drop')
  store.put(MachineConfig, 'v1alpha1', head + rule)
  await os.settled()
  expect(scripts[1]).toContain('policy accept')
  expect(scripts[1]).toContain('ip saddr != { 10.5.0.0/24 } tcp dport { 50000, 30000-30010 } drop')
  store.put(MachineConfig, 'v1alpha1', head)
  await os.settled()
  expect(scripts[2]).toBe('table inet talos\ndelete table inet talos\n')
  expect(store.list(NfTablesChain)).toEqual([])
})

test('foreign changes are reverted, and a correct table is left alone', async () => {
  const { store, os, scripts, state, changed } = machine()
  store.put(MachineConfig, 'v1alpha1', head + block + rule)
  await os.settled()
  const interfere = async (act: () => void) => {
    act()
    changed()
    await new Promise((resolve) => setImmediate(resolve))
    await os.settled()
    return scripts.length
  }
  expect(await interfere(() => {})).toBe(1)
  expect(await interfere(() => void state.rules.pop())).toBe(2)
  expect(await interfere(() => void state.chains.splice(0, 1, { ...state.chains[0]!, policy: 1 }))).toBe(3)
  expect(await interfere(() => state.rules.unshift({ table: 'talos', chain: 'ingress', comment: '' }))).toBe(4)
  expect(
    await interfere(() => {
      state.rules.length = 0
      state.chains.length = 0
    }),
  ).toBe(5)
  expect(await interfere(() => {})).toBe(5)
})
