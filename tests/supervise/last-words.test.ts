import { expect, test } from 'bun:test'
import { lastWords, lastWordsOf } from '../../src/supervise/last-words.ts'
import { LogRing } from '../../src/supervise/log-ring.ts'

test('the line with the reason is found in a page of help', () => {
  const help =
    '  --logging-format string   format of errors\nGlobal flags:\n  -h, --help   help for kube-scheduler\nError: unknown flag: --nope\n'
  expect(lastWords(help)).toBe('Error: unknown flag: --nope')
})

test('of a log the last errors are taken, in their order', () => {
  const log = [
    'I1121 21:24:10 start',
    'E1121 21:24:08 one',
    'E1121 21:24:09 two',
    'I1121 21:24:10 stop',
    'E1121 21:24:10 three',
    'F1121 21:24:11 four',
    'I1121 end',
  ]
  expect(lastWords(log.join('\n'))).toBe('E1121 21:24:09 two\nE1121 21:24:10 three\nF1121 21:24:11 four')
})

test('a line of JSON becomes its message and its error', () => {
  const line =
    '{"level":"warn","caller":"etcdmain/etcd.go:66","msg":"failed to verify flags","error":"--election-timeout[1ms] is too short"}'
  expect(lastWords(`{"level":"info","msg":"starting"}\n${line}`)).toBe('failed to verify flags: --election-timeout[1ms] is too short')
  const klog = '{"ts":1795447786914.7,"caller":"app/server.go:296","msg":"command failed","err":"failed to load kubelet config file"}'
  expect(lastWords(klog)).toBe('command failed: failed to load kubelet config file')
  expect(lastWords('{"error": cut')).toBe('{"error": cut')
})

test('only output since the start of the run counts', async () => {
  const log = new LogRing()
  log.line('error: of the run before')
  const { end } = log
  log.line('cannot bind port 80')
  expect(await lastWordsOf(log, 0)).toBe('error: of the run before')
  expect(await lastWordsOf(log, end)).toBe('cannot bind port 80')
})

test('words that are likely do where none is certain, and else the last lines', () => {
  expect(lastWords('starting\nlisten tcp :80: permission denied\nbye')).toBe('listen tcp :80: permission denied')
  expect(lastWords('a\nb\nc\nd\n')).toBe('b\nc\nd')
  expect(lastWords('')).toBe('')
})
