import { expect, test } from 'bun:test'
import { pollPeriod } from '../../../../src/os/k8s/controllers/kubelet/static-pod-status.ts'

const pod = (ready: boolean) => ({ conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] })

test('static pods are polled often until every desired one is ready', () => {
  expect(pollPeriod([pod(true), pod(true), pod(true)], 3)).toBe(15_000)
  expect(pollPeriod([pod(true), pod(false), pod(true)], 3)).toBe(1000)
  expect(pollPeriod([pod(true), {}], 2)).toBe(1000)
})

test('a pod that the kubelet does not have yet is looked for', () => {
  expect(pollPeriod([pod(true)], 3)).toBe(1000)
  expect(pollPeriod([], 0)).toBe(1000)
})
