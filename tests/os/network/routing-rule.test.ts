import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as net from '../../../src/linux/net/rtnetlink.ts'
import { observeRoutingRules } from '../../../src/os/network/controllers/route/routing-rule.ts'
import { RoutingRuleStatus } from '../../../src/os/network/resources/routing-rule.ts'

async function observed(kernel: Parameters<typeof observeRoutingRules>[0]['net']) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(observeRoutingRules({ net: kernel }))
  runtime.start()
  await runtime.settled()
  runtime.stop()
  return store
}

async function* never() {}

test('the routing rules of this machine: local first, then main', async () => {
  const store = await observed({ ...net, watchNetwork: never as never })
  expect(store.get(RoutingRuleStatus, 'inet4/00000')?.spec).toEqual({
    family: 'inet4',
    src: '',
    dst: '',
    table: 'local',
    priority: 0,
    action: 'unicast',
  })
  expect(store.get(RoutingRuleStatus, 'inet4/32766')?.spec.table).toBe('main')
})

test('rules with the same priority are distinguished, with all their selectors', async () => {
  const rule = { family: 2, table: 254, priority: 7, action: 1, tos: 0, flags: 0 }
  const rules = [rule, { ...rule, source: '10.0.0.0/8', action: 7, inputLink: 'eth0', mark: 3 }]
  const store = await observed({
    openNetwork: () => ({ rules: () => rules, [Symbol.dispose]() {} }) as never,
    watchNetwork: never as never,
  })
  expect(
    store
      .list(RoutingRuleStatus)
      .map(({ metadata }) => metadata.id)
      .sort(),
  ).toEqual(['inet4/00007', 'inet4/00007/2'])
  expect(store.get(RoutingRuleStatus, 'inet4/00007/2')?.spec).toEqual({
    family: 'inet4',
    src: '10.0.0.0/8',
    dst: '',
    table: 'main',
    priority: 7,
    action: 'unreachable',
    iifName: 'eth0',
    fwMark: 3,
    fwMask: 0xffffffff,
  })
})
