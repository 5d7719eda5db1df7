/** GRUB configuration: a constant main file, and one file per slot with the slot's kernel and parameters. */
import { parseKinds } from '../../../oci/image-manifest.ts'
import { grubWords } from '../../../oci/kernel-command-line.ts'
import { type Slot, type SlotContent, trialStarts } from './slot.ts'

/** The directory on the BOOT partition that GRUB's core reads. */
export const grubFolder = '/grub'

/**
 * The main configuration. `good` is the slot last marked good. `next`, if set, is on trial with `tries` boots left, a counter
 * decremented and saved before the slot is booted. GRUB has no arithmetic, hence one case for each count.
 */
export function grubConfig(): string {
  const counts = Array.from({ length: trialStarts }, (_, index) => trialStarts - index)
  return `# Which slot starts is in grubenv; what a slot starts is in its slot.cfg.
insmod part_gpt
insmod fat
load_env --file ($root)${grubFolder}/grubenv good next tries
set slot="$good"
${counts.map((count, index) => `${index === 0 ? 'if' : 'elif'} [ -n "$next" -a "$tries" = "${count}" ]; then\n  set tries="${count - 1}"\n  set slot="$next"\n  save_env --file ($root)${grubFolder}/grubenv tries`).join('\n')}
fi
if [ ! -f ($root)/$slot/slot.cfg ]; then
  if [ "$slot" = "a" ]; then set slot="b"; else set slot="a"; fi
fi
if [ "$slot" = "a" ]; then set other="b"; else set other="a"; fi
set default="$slot"
set fallback="$other"
set timeout_style=hidden
set timeout=1
menuentry "Ichor, slot A" --id a {
  source ($root)/a/slot.cfg
}
menuentry "Ichor, slot B" --id b {
  source ($root)/b/slot.cfg
}
menuentry "Wipe STATE and EPHEMERAL, start in maintenance" --id reset {
  set more="talos.experimental.wipe=system:STATE,EPHEMERAL"
  source ($root)/$slot/slot.cfg
}
`
}

/** The configuration of a slot. */
export function slotConfig(slot: Slot, { version, rootHash, image, encryption }: SlotContent, commandLine: string): string {
  return [
    `# release ${version}`,
    `# root ${rootHash}`,
    `# image ${image}`,
    ...(encryption ? [`# encryption ${encryption.join(' ')}`] : []),
    `linux ($root)/${slot}/vmlinuz ${grubWords(commandLine)} $more`,
    `initrd ($root)/${slot}/initramfs.xz`,
    '',
  ].join('\n')
}

/** The content of a slot according to its file; undefined if the file is truncated. */
export function parseSlotConfig(text: string): SlotContent | undefined {
  const version = /^# release (.+)$/m.exec(text)?.[1]
  const rootHash = /^# root ([0-9a-f]{64})$/m.exec(text)?.[1]
  const image = /^# image ([0-9a-f]{16})$/m.exec(text)?.[1]
  const encryption = parseKinds(/^# encryption (.+)$/m.exec(text)?.[1])
  return version && rootHash && image && /^initrd .+\n$/m.test(text)
    ? { version, rootHash, image, ...(encryption && { encryption }) }
    : undefined
}
