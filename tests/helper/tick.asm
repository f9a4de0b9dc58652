; The source of src/lab/tick.c, kept as its documentation (nasm -f bin -o tick.bin tick.asm).
; 512-byte guest: boots from its own disk through SeaBIOS, counts on disk and on COM1.
; sector 0 = this code; bytes 0x1E8..0x1FB = config (delay in 55 ms ticks, name)
; sector 1 = state ("TICK", dword count, dword ~count); sectors 8..8+1023 = ring, entry n at 8+(n & 1023)
; "COUNT n" is printed only after BIOS said both writes are done (QEMU runs virtio-blk write-through for SeaBIOS)
bits 16
org 0x7c00
	cli
	xor ax,ax
	mov ds,ax
	mov es,ax
	mov ss,ax
	mov sp,0x7c00
	sti
	cld
	mov [drv],dl
	mov dx,0x602		; PM1_EN: let system_powerdown set PWRBTN_STS
	in ax,dx
	or ax,0x100
	out dx,ax
	mov si,m_boot
	call puts
	mov si,name
	call puts
	mov byte [op],0x42
	mov ax,1
	call disk
	jc bad
	cmp dword [buf],'TICK'
	je have
	mov dword [buf],'TICK'
	mov dword [buf+4],0
have:
	mov si,m_start
	call puts
	mov eax,[buf+4]
	call dec
	mov byte [op],0x43
loop1:
	inc dword [buf+4]
	mov eax,[buf+4]
	mov [buf+12],eax
	not eax
	mov [buf+8],eax
	mov eax,[buf+4]
	and ax,1023
	add ax,8
	call disk
	jc bad
	mov ax,1
	call disk
	jc bad
	mov si,m_cnt
	call puts
	mov eax,[buf+4]
	call dec
	movzx cx,byte [delay]
	call poll
	jcxz loop1
w:	hlt
	call poll
	loop w
	jmp loop1
poll:	mov dx,0x600		; PM1_STS
	in ax,dx
	cmp ax,-1		; no such port (microvm)
	je .k
	test ah,1
	jz .k
	mov si,m_off
	call puts
	mov dx,0x604		; PM1_CNT: S5
	mov ax,0x2000
	out dx,ax
	hlt
.k:	mov dx,0x3fd
	in al,dx
	test al,1
	jz .r
	mov dx,0x3f8
	in al,dx
	cmp al,'r'
	jne .e
	mov al,0xfe		; reset through the keyboard controller
	out 0x64,al
	hlt
.e:	call putc		; echo
.r:	ret
bad:	mov si,m_err
	call puts
	movzx eax,ah
	call dec
	mov cx,18
.w:	hlt
	loop .w
	mov ax,1
	jmp loop1
disk:	mov [lba],ax		; ax = sector, op = 0x42 read / 0x43 write
	mov si,dap
	mov byte [si+2],1	; blocks: an error has left 0 there, and 0 blocks are never an error
	mov dl,[drv]
	mov ax,[op-1]		; ah = op, al = 0, the end of m_err: written without verifying
	int 0x13
	ret
putc:	push dx
	push ax
	mov dx,0x3fd
.w:	in al,dx
	test al,0x20
	jz .w
	pop ax
	mov dx,0x3f8
	out dx,al
	pop dx
	ret
puts:	lodsb
	test al,al
	jz .r
	call putc
	jmp puts
.r:	ret
dec:	mov ebx,10
	xor cx,cx
.a:	xor edx,edx
	div ebx
	push dx
	inc cx
	test eax,eax
	jnz .a
.b:	pop ax
	add al,'0'
	call putc
	loop .b
	mov al,13
	call putc
	mov al,10
	jmp putc
m_boot	db 'BOOT ',0
m_start	db ' START ',0
m_cnt	db 'COUNT ',0
m_off	db 'POWEROFF',13,10,0
m_err	db 'DISKERR ',0
op	db 0			; right behind a 0
drv	db 0
dap	db 16,0,1,0
	dw buf,0
lba	dd 0,0
	times 0x1e8-($-$$) db 0
delay	db 18			; 0x1E8
name	db 'tick',0		; 0x1E9, up to 20 bytes with its zero
	times 510-($-$$) db 0
	dw 0xaa55
buf	equ 0x8000
