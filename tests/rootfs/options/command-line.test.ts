import { expect, test } from 'bun:test'
import { targets } from '../../../rootfs/build/target.ts'
import { commandLine } from '../../../rootfs/image/command-line.ts'
import { CommandLineError, grubWords } from '../../../src/oci/kernel-command-line.ts'

test('the command line has what init requires, and the source of the configuration', () => {
  const words = commandLine([], 'nocloud').split(' ')
  for (const word of ['slab_nomerge=', 'pti=on', 'init_on_alloc=1', 'lockdown=confidentiality', 'talos.platform=nocloud'])
    expect(words).toContain(word)
})

test('the consoles are those of the processor', () => {
  const consoles = (line: string) => line.split(' ').filter((word) => word.startsWith('console='))
  expect(consoles(commandLine([]))).toEqual(['console=tty0', 'console=ttyS0'])
  expect(consoles(commandLine([], 'metal', targets.arm64))).toEqual(['console=ttyAMA0', 'console=tty0'])
})

test('parameters are added, and with a minus taken away', () => {
  const words = commandLine(['ip=dhcp', '-console=tty0', '-lockdown']).split(' ')
  expect(words).toContain('ip=dhcp')
  expect(words).toContain('console=ttyS0')
  expect(words.filter((word) => /^(console=tty0|lockdown)/.test(word))).toEqual([])
})

test('consoles and a platform take the place of those of the image', () => {
  const words = commandLine(['console=ttyS1', 'console=hvc0', 'talos.platform=aws'], 'nocloud').split(' ')
  expect(words.filter((word) => /^(console=|talos.platform)/.test(word))).toEqual(['console=ttyS1', 'console=hvc0', 'talos.platform=aws'])
})

test('what would not stand on a command line is refused', () => {
  for (const wrong of ['', 'a b', 'a\n', 'ä']) expect(() => commandLine([wrong])).toThrow(CommandLineError)
  expect(() => commandLine([`x=${'y'.repeat(2048)}`])).toThrow(/the kernel takes 2047/)
})

test('words that GRUB would read otherwise are quoted', () => {
  expect(grubWords("console=ttyS0,115200 a=$b  c=';'")).toBe(`console=ttyS0,115200 'a=$b' 'c='\\'';'\\'''`)
})
