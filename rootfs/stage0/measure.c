/* Measures the phases of the start in the TPM, and keeps what the firmware's stub unpacks about them. */
#include "stage0.h"

/* The kernel makes it for a TPM 2.0 only, and before the first process starts: the drivers are built in. */
#define TPM "/dev/tpmrm0"
#define HEAD 27

/* TPM2_PCR_Event on PCR 11 with an empty password: every bank is extended by its own hash of the phase. */
void measure(const char *phase)
{
	static unsigned char command[HEAD + 2 + 32] = {
		0x80, 0x02, 0, 0, 0, 0, 0, 0, 0x01, 0x3c, 0, 0, 0, 11, 0, 0, 0, 9, 0x40, 0, 0, 9,
	};
	static unsigned char response[512];
	word size = length_of(phase), length = HEAD + 2 + size;
	long fd = open_file(TPM, O_RDWR | O_CLOEXEC);
	long result;

	if (fd == -E_NOENT)
		return;
	if (size > 32)
		stop("cannot measure", phase, 0, damaged);
	command[5] = length;
	command[HEAD + 1] = size;
	memcpy(command + HEAD + 2, phase, size);
	result = fd < 0 ? fd : call(__NR_write, fd, (long)command, length, 0, 0);
	if (result == (long)length)
		result = call(__NR_read, fd, (long)response, sizeof response, 0, 0);
	close_file(fd);
	/* The response code, 4 bytes from offset 6. */
	if (result < 10 || response[6] || response[7] || response[8] || response[9])
		stop("cannot measure this start in the TPM, phase", phase, result < 0 ? result : 0, "switch the machine off and on, or switch the TPM off");
}

/* Sections `.pcrsig` and `.pcrpkey` of the image, which the stub puts into an initramfs of its own. */
void keep_policy(const char *folder)
{
	static const char *const names[] = { "/tpm2-pcr-signature.json", "/tpm2-pcr-public-key.pem" };
	static char content[65536];

	for (int n = 0; n < 2; n++) {
		struct text from = { .length = 0 }, to = { .length = 0 };

		add(&from, "/.extra");
		add(&from, names[n]);
		add(&to, folder);
		add(&to, names[n]);
		if (read_text(from.at, content, sizeof content) > 0)
			write_text(to.at, content);
	}
}
